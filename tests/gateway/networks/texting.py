"""A desk that sends messages of mode P."""

from collections.abc import Sequence
from typing import Any

from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.domain.sms.sms_messages import Message, SmsRequest
from sandbox_sim.gateway.networks.manual_actions import LiveActions
from tests.gateway.networks.desk import Desk
from tests.records import SERVICE

UNITS = f"service/{SERVICE}/sms/available/SMS"
FIRST, SECOND = "0244000001", "233540000009"


async def send(desk: Desk, *recipients: str, **fields: Any) -> Reply:
    asked = {"msg_body": "Your code is 1234", "sender_id": "Shop", **fields}
    bulk = asked.pop("bulk", len(recipients) > 1)
    request = SmsRequest(SERVICE, list(recipients or (FIRST,)), bulk=bulk, **asked)
    return await desk.sms.send(request, lambda: "http://gateway.test")


async def a_desk(units: int = 10) -> Desk:
    desk = Desk()
    if units:
        await LiveActions(desk.store, desk.clock, desk.recorder).topup(SERVICE, Wallet.SMS, units)
    return desk


async def messages(desk: Desk) -> Sequence[Message]:
    return await desk.store.run(lambda unit: unit.list_messages(Listing()))


async def statuses(desk: Desk) -> list[str]:
    return [each.status.value for each in reversed(await messages(desk))]
