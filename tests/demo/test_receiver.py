"""The doctor finds nothing wrong with the receiver of the shop."""

import asyncio

from click.testing import CliRunner

from sandbox_sim.cli import main
from tests.demo.conftest import Demo


async def test_the_doctor_is_content(demo: Demo) -> None:
    words = ["doctor", demo.settings.callback_url, "--profile", "event"]
    words += ["--secret-key", demo.settings.secret_key]

    result = await asyncio.to_thread(CliRunner().invoke, main, words)

    assert (result.exit_code, "wrong  " in result.output) == (0, False), result.output
