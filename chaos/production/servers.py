"""The servers of a run of production: replicas of our gateway."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.clients import SECRET
from chaos.facts import Facts
from chaos.production.load import KEY
from chaos.servers import Server, quiet_port

_CONFIGURATION: Final = """\
production = true
callback_hosts = {{ allow = ["127.0.0.0/8"] }}
callback_retry_interval_s = 0.5
callback_timeout_s = 10

[[credentials]]
client_key = "{key}"
secret_key = "{secret}"
mode = "P"
{network}"""


def replicas(stores: Sequence[str], network: str, directory: Path, facts: Facts) -> list[Server]:
    """A production server on each of these stores. network: the tables that lead to it."""
    file = directory / "production.toml"
    file.write_text(_CONFIGURATION.format(key=KEY, secret=SECRET, network=network), "utf-8")
    options = ("--config", str(file))
    return [
        Server(index, quiet_port(), store, directory, facts, options)
        for index, store in enumerate(stores)
    ]
