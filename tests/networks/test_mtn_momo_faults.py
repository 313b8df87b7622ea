"""MTN MoMo and a gateway process that is killed, with SQLite, before it sends a payment."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from tests.kit.requests import collection
from tests.networks.fake_momo import SETTINGS, MomoServer, serving as serving_momo
from tests.production.servers import serving, shop as a_shop

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


async def test_killed_before_the_first_byte_the_payment_goes_out_with_the_same_reference(
    tmp_path: Path,
) -> None:
    async with serving_momo() as momo:
        with a_shop() as shop, serving(tmp_path, table(momo)) as server:
            momo.hold("token")
            body = collection("K1", callback_url=f"{shop.url}/callback")
            lost = asyncio.create_task(asyncio.to_thread(server.post, "/make_payment", **body))
            await momo.until(lambda: bool(momo.fake.came("token")))
            server.process.kill()
            server.process.wait()
            with contextlib.suppress(OSError, json.JSONDecodeError):
                await lost
            momo.release()
            assert momo.fake.payments == {}

            with serving(tmp_path, table(momo)):
                await momo.until(lambda: bool(momo.fake.payments))
                ((reference, _),) = momo.fake.payments.items()
                momo.fake.decide(reference, "SUCCESSFUL")
                _, told = await asyncio.to_thread(shop.next)

        assert (told["trans_ref"], told["trans_status"]) == ("K1", "000/SUCCESS")
        sent = momo.fake.came("requesttopay")
        asked = {each.path.rpartition("/")[2] for each in sent if each.method == "GET"}
        assert asked == {reference}
        assert [each.method for each in sent][:3] == ["GET", "GET", "POST"]
