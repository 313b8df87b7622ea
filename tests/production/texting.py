"""A desk that sends messages of mode P."""

from collections.abc import Sequence
from typing import Any

from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import Message, SmsRequest
from sandbox_sim.values.response_codes import Reply
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import SIGNED, Desk
from tests.sample_records import SERVICE
from tests.units import unit_of

UNITS = f"service/{SERVICE}/sms/SMS available"
FIRST, SECOND = "0244000001", "233540000009"


async def send(desk: Desk, *recipients: str, **fields: Any) -> Reply:
    text = {"msg_body": "Your code is 1234", "sender_id": "Shop", **fields}
    numbers = list(recipients or (FIRST,))
    request = SmsRequest(SERVICE, numbers, bulk=len(numbers) > 1, **text)
    return await desk.sms.send(request, lambda: "http://gateway.test")


async def a_desk(units: int = 10, **options: Any) -> Desk:
    desk = Desk(**options)
    if units:
        await desk.books.topup(SERVICE, Wallet.SMS, units, SIGNED)
    return desk


async def messages(desk: Desk) -> Sequence[Message]:
    return await unit_of(desk.store).list_messages(Listing())


async def statuses(desk: Desk) -> list[str]:
    return [each.status.value for each in reversed(await messages(desk))]
