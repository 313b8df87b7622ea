"""The servers of a run of production: replicas of our gateway, and the network."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.clients import KEY as OTHER_KEY, SECRET
from chaos.facts import Facts
from chaos.production.load import CANCELLED, FAILS, KEY
from chaos.servers import Server, quiet_port

NETWORK: Final = 9  # the index of its server
# Seconds that our gateway waits for an answer of the network.
TIMEOUT_S: Final = 1.0
_CONFIGURATION: Final = """\
production = true
callback_hosts = {{ allow = ["127.0.0.0/8"] }}
callback_retry_interval_s = 0.5
callback_timeout_s = 10

[[credentials]]
client_key = "{key}"
secret_key = "{secret}"
mode = "P"

[networks.account]
adapter = "upstream"
base_url = "{url}"
client_key = "{other_key}"
secret_key = "{secret}"
rejects_duplicates = true
timeout_s = {timeout_s}
poll_after_s = 0.3
poll_at_most_s = 2

[[routes]]
network = "account"
"""


def network(directory: Path, facts: Facts) -> Server:
    """A sandbox that refuses repeated ids, with a store that survives its end."""
    outcomes = json.dumps({FAILS: "001", CANCELLED: "003"})
    settings = (
        *("settle_delay_ms=300", "callback_retry_interval_s=0.5", "duplicates=reject"),
        f"magic_outcomes={outcomes}",
    )
    options = [part for setting in settings for part in ("--set", setting)]
    store = f"sqlite:{directory / 'network.sqlite3'}"
    return Server(NETWORK, quiet_port(), store, directory, facts, options)


def replicas(stores: Sequence[str], url: str, directory: Path, facts: Facts) -> Sequence[Server]:
    """A production server on each of these stores. url: of the network."""
    file = directory / "production.toml"
    file.write_text(
        _CONFIGURATION.format(
            key=KEY, secret=SECRET, other_key=OTHER_KEY, url=url, timeout_s=TIMEOUT_S
        ),
        "utf-8",
    )
    options = ("--config", str(file))
    return [
        Server(index, quiet_port(), store, directory, facts, options)
        for index, store in enumerate(stores)
    ]
