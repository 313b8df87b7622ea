"""`sandbox-sim networks prove`. D39."""

import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.settings.loading import as_toml
from sandbox_sim.testing.network_contract import PROOFS
from tests.cli.receivers import ask
from tests.networks.http_json.fake_networks import documented
from tests.production.settings import LIVE

pytestmark = pytest.mark.decision("D39")


class Listener:
    """A socket at the address of the network. It records whether a client connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def was_called(self) -> bool:
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
async def network() -> AsyncIterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def config(tmp_path: Path, network: Listener) -> Path:
    """A configuration with a network at the listener, one that loses money, and another adapter."""
    hubtel = {"adapter": "http_json", **documented("hubtel")}
    good = {**hubtel, "base_url": network.url, "status_base_url": network.url}
    bad: dict[str, Any] = deepcopy(good)
    bad["status"]["statuses"] = {"409": "not_found"}
    networks = {"good": good, "bad": bad, "staging": {"adapter": "simulated"}}
    lines = ["production = true", f"credentials = {as_toml([LIVE])}"]
    lines += [f"networks.{name} = {as_toml(table)}" for name, table in networks.items()]
    file = tmp_path / "gateway.toml"
    file.write_text("\n".join(lines), "utf-8")
    return file


async def test_every_proof_gets_a_line_and_the_network_is_not_called(
    config: Path, network: Listener
) -> None:
    result = await ask("networks", "prove", "good", "--config", config)

    *lines, last = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(lines) == len(PROOFS)
    assert "proved every_declared_operation_arrives_once" in lines
    assert "not proven fifty_at_once_renew_a_token_once: the network uses no tokens" in lines
    assert last.startswith("good: ")
    assert last.endswith(" 0 disproved; nothing was sent to its base_url")
    assert not network.was_called()


async def test_a_proof_that_is_disproved_exits_with_1_and_says_what_happened(config: Path) -> None:
    result = await ask("--json", "networks", "prove", "bad", "--config", config)

    document = json.loads(result.stdout)
    (found,) = [each for each in document["proofs"] if each["verdict"] == "disproved"]
    assert (result.exit_code, document["network"]) == (1, "bad")
    assert found["name"] == "status_under_conflict"
    assert found["reason"] == "conflict is read as an unknown reference"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("other", "there is no network other; the configuration has: bad, good, staging"),
        ("staging", "staging has the adapter simulated, but prove needs http_json"),
    ],
)
async def test_a_network_without_tables_exits_with_2(
    config: Path, name: str, sentence: str
) -> None:
    result = await ask("networks", "prove", name, "--config", config)

    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


async def test_tables_that_are_wrong_are_named_also_without_production(config: Path) -> None:
    result = await ask(
        *("networks", "prove", "good", "--config", config, "--set", "production=false"),
        SANDBOX_SIM_NETWORKS__GOOD__BASE_URL="api.example",
    )

    assert result.exit_code == 1
    assert "networks.good: base_url: must be an http" in result.stderr


def test_prove_runs_without_pytest(config: Path) -> None:
    program = (
        "import sys; sys.modules['pytest'] = None; from sandbox_sim.cli import main; "
        f"main(['networks', 'prove', 'good', '--config', {str(config)!r}])"
    )

    ended = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", program], capture_output=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, b"")
