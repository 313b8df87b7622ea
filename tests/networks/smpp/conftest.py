"""The adapter at a fake SMSC, as most tests begin with it."""

from collections.abc import AsyncIterator

import pytest

from tests.networks.smpp.network import Sending, sending_to_fake


@pytest.fixture
async def each() -> AsyncIterator[Sending]:
    async with sending_to_fake() as each:
        yield each
