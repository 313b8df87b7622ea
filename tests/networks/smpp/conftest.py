"""The adapter at a fake SMSC, as most tests begin with it."""

from collections.abc import AsyncIterator

import pytest

from tests.networks.smpp.network import Esme, esme_at_fake


@pytest.fixture
async def esme() -> AsyncIterator[Esme]:
    async with esme_at_fake() as esme:
        yield esme
