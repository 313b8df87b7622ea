"""The settings of an SMPP network: an error is one sentence without secrets."""

import subprocess
import sys
from typing import Any

import pytest

from sandbox_sim.networks.smpp.adapter import smpp
from sandbox_sim.ports.network import NetworkConfigError
from tests.networks.fakes import environment

WHOLE = {"host": "smsc.example", "system_id": "shop", "password": "canary99"}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"host": ""}, "host: String should have at least 1 character"),
        ({"system_id": "x" * 16}, "system_id: String should have at most 15 characters"),
        ({"system_id": "café"}, "system_id: must be printable ASCII"),
        ({"password": "canary99999"}, "password: "),
        ({"password": "canaryé"}, "password: must be printable ASCII"),
        ({"port": 70_000}, "port: "),
        ({"window": 0}, "window: "),
        ({"receipt_ids": "octal"}, "receipt_ids: Input should be 'same', 'decimal_of_hex' or"),
        ({"sender": "Shop"}, "sender: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_setting_is_named(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(NetworkConfigError) as caught:
        smpp({**WHOLE, **changed}, environment())

    assert str(caught.value).startswith(problem)
    assert "canary" not in str(caught.value)


@pytest.mark.decision("D39")
def test_settings_may_be_texts_and_receipt_timeout_s_bounds_a_decision() -> None:
    texts = {"port": "2776", "tls": "true", "window": "5", "receipt_timeout_s": "3600"}

    decides_within = smpp({**WHOLE, **texts}, environment()).capabilities.decides_within

    assert decides_within is not None
    assert decides_within.total_seconds() == 3600


def test_a_start_without_the_extra_says_what_to_install() -> None:
    script = "import sys; sys.modules['smpp34'] = None\nimport sandbox_sim.networks.smpp.adapter\n"

    done = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert "install the extra smpp of sandbox-sim" in done.stderr
