"""A gateway in production that a client of mode P uses."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.settings import LIVE


async def live(start: StartSandbox, networks: Mapping[str, Any], **settings: Any) -> Sandbox:
    """Start a gateway whose first network takes everything, unless `routes` say otherwise.

    Its requests are of mode P, and callbacks may go to this machine.
    """
    chosen = {
        "credentials": [LIVE],
        "routes": [{"network": next(iter(networks))}],
        "callback_hosts": {"allow": ["127.0.0.0/8"]},
        **settings,
    }
    sandbox = await start(production=True, allow_memory=True, networks=networks, **chosen)
    sandbox.headers["Authorization"] = basic("live_key", "live_secret")
    return sandbox


async def settled(sandbox: Sandbox, **by: float) -> None:
    """Advance the clock, and wait until the gateway has done all that is due then."""
    await sandbox.advance(**by or {"seconds": 0})
    while True:
        left = [task for task in asyncio.all_tasks() if "BackgroundJobs" in repr(task)]
        if left:
            await asyncio.wait(left)
        # What ended, here or during the last advance, may have made something due.
        if not await sandbox.gateway.jobs.advance(timedelta()) and not left:
            return
