"""The servers of a run of production: replicas of our gateway."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.facts import Facts
from chaos.production.load import KEY
from chaos.servers import Server
from tests.kit.requests import SECRET
from tests.kit.servers import free_port

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


def replicas(
    stores: Sequence[str], network: str, directory: Path, facts: Facts, tree: Path | None
) -> list[Server]:
    """A production server on each of these stores.

    network: the tables that lead to it. tree: as in `Server`.
    """
    file = directory / "production.toml"
    file.write_text(_CONFIGURATION.format(key=KEY, secret=SECRET, network=network), "utf-8")
    options = ("--config", str(file))
    return [
        Server(index, free_port(), store, directory, facts, options, tree)
        for index, store in enumerate(stores)
    ]
