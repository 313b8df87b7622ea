"""MTN MoMo and a gateway process that is killed, with SQLite: each payment is made once."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kit.requests import collection
from tests.networks.fake_momo import SETTINGS, MomoServer, Payment, serving as serving_momo
from tests.production.servers import Answer, Other, Server, serving, shop as a_shop

pytestmark = pytest.mark.decision("D39")


def table(momo: MomoServer) -> str:
    settings = "\n".join(f'{name} = "{value}"' for name, value in SETTINGS.items())
    return f"""
[networks.mtn]
adapter = "mtn_momo"
base_url = "{momo.url}"
timeout_s = 1
poll_after_s = 0.05
{settings}

[[routes]]
network = "mtn"
"""


@dataclass
class Merchant:
    """A client of a gateway, with a server for its callbacks."""

    server: Server
    shop: Other

    async def pay(self, transaction_id: str, **fields: Any) -> Answer:
        address = {"callback_url": f"{self.shop.url}/callback"}
        body = collection(transaction_id, **{**address, **fields})
        return await asyncio.to_thread(self.server.post, "/make_payment", **body)

    async def callback(self) -> tuple[str, str]:
        """The next callback: which transaction, and its status."""
        _, body = await asyncio.to_thread(self.shop.next)
        return body["trans_ref"], body["trans_status"]


@pytest.fixture(scope="module")
def shop() -> Iterator[Other]:
    with a_shop() as found:
        yield found


@asynccontextmanager
async def merchant(folder: Path, momo: MomoServer, shop: Other) -> AsyncIterator[Merchant]:
    with serving(folder, table(momo)) as server:
        yield Merchant(server, shop)


def only(momo: MomoServer) -> Payment:
    (payment,) = momo.fake.payments.values()
    return payment


async def paid_at_a_killed_server(momo: MomoServer, paying: Merchant, purpose: str) -> None:
    """Pay, and kill the server while it waits for the answer to a request of this purpose."""
    momo.hold(purpose)
    lost = asyncio.create_task(paying.pay("K1"))
    await momo.until(lambda: bool(momo.fake.came(purpose)))
    paying.server.process.kill()
    paying.server.process.wait()
    with contextlib.suppress(OSError, json.JSONDecodeError):
        await lost
    momo.release()


async def test_killed_between_submit_and_record_the_payment_is_found_by_its_reference(
    tmp_path: Path, shop: Other
) -> None:
    async with serving_momo() as momo:
        async with merchant(tmp_path, momo, shop) as paying:
            await paid_at_a_killed_server(momo, paying, "requesttopay")
        momo.fake.decide(only(momo).reference, "SUCCESSFUL")

        async with merchant(tmp_path, momo, shop) as paying:
            assert await paying.callback() == ("K1", "000/SUCCESS")
            assert (await paying.pay("K1"))[1]["response_code"] == "219"

        assert only(momo).body["externalId"] == "K1"
        assert [each.method for each in momo.fake.came("requesttopay")].count("POST") == 1


async def test_killed_before_the_first_byte_the_payment_goes_out_with_the_same_reference(
    tmp_path: Path, shop: Other
) -> None:
    async with serving_momo() as momo:
        async with merchant(tmp_path, momo, shop) as paying:
            await paid_at_a_killed_server(momo, paying, "token")
        assert momo.fake.payments == {}

        async with merchant(tmp_path, momo, shop) as paying:
            await momo.until(lambda: bool(momo.fake.payments))
            momo.fake.decide(only(momo).reference, "SUCCESSFUL")
            assert await paying.callback() == ("K1", "000/SUCCESS")

        asked = [each for each in momo.fake.came("requesttopay") if each.method == "GET"]
        assert {each.path.rpartition("/")[2] for each in asked} == {only(momo).reference}
        assert [each.method for each in momo.fake.came("requesttopay")][:3] == [
            "GET",
            "GET",
            "POST",
        ]
