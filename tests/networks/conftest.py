"""The adapter `mtn_momo` at the fake server, as most of its tests begin with it."""

from collections.abc import AsyncIterator

import pytest

from tests.networks.momo import Momo, opened


@pytest.fixture
async def momo() -> AsyncIterator[Momo]:
    async with opened() as momo:
        yield momo
