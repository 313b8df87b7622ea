"""A client of mode P at a gateway that routes to the fake MTN MoMo server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from chaos.production.fake_momo import SETTINGS, FakeMomo, MomoServer, Payment, serving
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live, settled
from tests.web.control_api import get


@dataclass
class Paying:
    """The gateway, and its network."""

    sandbox: Sandbox
    momo: MomoServer

    def only(self) -> Payment:
        """The only payment that MTN has."""
        (payment,) = self.momo.fake.payments.values()
        return payment

    @property
    def attempt_id(self) -> str:
        return self.only().callback_url.rpartition("/")[2]

    @property
    def queries(self) -> int:
        """How often MTN was asked for a payment."""
        return [each.method for each in self.momo.fake.came("requesttopay")].count("GET")

    async def status(self, transaction_id: str = "T1") -> str:
        return str((await self.sandbox.status(transaction_id)).data["status"])

    async def record(self) -> dict[str, Any]:
        """The payment as the control API shows it."""
        found: dict[str, Any] = await get(self.sandbox, "transactions/55/T1")
        return found

    async def forge(self, path: str, body: bytes) -> int:
        """Send a notification that MTN did not send; returns the HTTP status of the answer."""
        url = f"{self.sandbox.url}/_networks/mtn/{path}"
        async with self.sandbox.session.post(url, data=body) as answer:
            return answer.status

    async def settled(self, **by: float) -> None:
        await settled(self.sandbox, **by)


@asynccontextmanager
async def paying_over_momo(
    start: StartSandbox,
    fake: FakeMomo | None = None,
    account: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Paying]:
    """account: settings of the network; settings: those of the gateway."""
    async with serving(fake) as momo:
        network = {"adapter": "mtn_momo", "base_url": momo.url, **SETTINGS, **(account or {})}
        sandbox = await live(start, {"mtn": network}, **settings)
        yield Paying(sandbox, momo)
        await sandbox.stop()
