"""Run the fake MTN MoMo server: `python -m tests.networks.fake_momo 8300`.

It decides each payment a moment later and sends the callback: numbers that end in 9 fail, all
others succeed.
"""

import argparse
import asyncio
from contextlib import suppress

import aiohttp

from chaos.production.fake_momo import (
    CURRENCIES,
    ENVIRONMENT,
    SETTINGS,
    FakeMomo,
    MomoServer,
    serving,
)


async def _decide_all(server: MomoServer) -> None:
    """Decide each payment a moment after it came, and send its callback."""
    seen: set[str] = set()
    while True:
        await asyncio.sleep(0.2)
        for reference in server.fake.payments.keys() - seen:
            seen.add(reference)
            payment = server.fake.payments[reference]
            if payment.body[payment.product.party]["partyId"].endswith("9"):
                server.fake.decide(reference, "FAILED", "APPROVAL_REJECTED")
            else:
                server.fake.decide(reference, "SUCCESSFUL")
            if payment.callback_url:
                with suppress(aiohttp.ClientError):  # MTN sends a callback once
                    await server.notify(reference)


async def _run(port: int, environment: str) -> None:
    async with serving(FakeMomo(environment), port) as server:
        print(f"fake MTN MoMo ready at {server.url}", flush=True)  # noqa: T201
        settings = {**SETTINGS, "target_environment": environment}
        for name, value in settings.items():
            print(f'{name} = "{value}"', flush=True)  # noqa: T201
        await _decide_all(server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the fake MTN MoMo server.")
    parser.add_argument("port", type=int)
    parser.add_argument("--environment", choices=CURRENCIES, default=ENVIRONMENT)
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(options.port, options.environment))
