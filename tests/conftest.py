"""A gateway with a virtual clock that tests reach over a real socket."""

import base64
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web
from hypothesis import settings

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.bootstrap import Gateway, build
from sandbox_sim.config import Settings
from sandbox_sim.web.transport.server import GatewayRunner
from tests import fork_server, openapi_contract, postgres
from tests.openapi_contract import CheckedResponse
from tests.sqlite_files import IN_MEMORY

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytest_plugins = ["tests.timeouts", "tests.fast_run"]

# A deadline would fail on a busy machine. --hypothesis-profile=wide and =long, as in .ci/run, try
# more examples.
settings.register_profile("suite", deadline=None, max_examples=12)
settings.register_profile("wide", deadline=None, max_examples=100)
settings.register_profile("long", deadline=None, max_examples=400)
settings.load_profile("suite")

# Keep compiled code, or each of a hundred processes compiles it again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Processes that the tests start load no certificates of public authorities, because that takes
# 50 ms in each of them. httpx refuses a file without certificates, but takes "" as no file. A test
# may name others.
os.environ["SSL_CERT_FILE"] = ""
os.environ["SSL_CERT_DIR"] = os.devnull

REQUEST_TIME = "2026-01-01 09:00"


def basic(client_key: str = "sandbox_key", secret_key: str = "sandbox_secret") -> str:
    """Return the value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{client_key}:{secret_key}".encode()).decode()


@dataclass(frozen=True)
class Seen:
    """An answer: HTTP status, headers and the parsed body."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def code(self) -> str:
        return str(self.body["response_code"])

    @property
    def message(self) -> str:
        return str(self.body["response_message"])

    @property
    def data(self) -> Any:
        return self.body["response_data"]

    @property
    def rule(self) -> str:
        return self.headers["X-Sandbox-Rule"]


@dataclass
class Sandbox:
    """A running gateway as a client sees it, and its clock."""

    url: str
    gateway: Gateway
    session: ClientSession
    runner: GatewayRunner
    service_id: int = 55
    headers: dict[str, str] = field(
        default_factory=lambda: {"Authorization": basic(), "User-Agent": "tests"}
    )

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> Seen:
        """POST JSON to a path of the gateway."""
        sent = {**self.headers, **headers}
        async with self.session.post(self.url + path, json=body, headers=sent) as response:
            return Seen(response.status, dict(response.headers), await response.json())

    def payment(self, **fields: Any) -> dict[str, Any]:
        """The body of a mobile money collection; `fields` replace its own, and None removes one."""
        body = {
            "service_id": self.service_id,
            "reference": "Order 1",
            "transaction_id": "T1",
            "trans_type": "CTM",
            "amount": 10.5,
            "nw": "MTN",
            "payment_option": "MOM",
            "customer_number": "0244000001",
            "nickname": "Ama",
            "callback_url": self.inbox_url("orders"),
            "request_time": REQUEST_TIME,
            **fields,
        }
        return {name: value for name, value in body.items() if value is not None}

    async def collect(self, **fields: Any) -> Seen:
        return await self.post("/make_payment", self.payment(**fields))

    async def card(self, **fields: Any) -> Seen:
        card = {
            "nw": "VIS",
            "payment_option": "CRD",
            "customer_number": "4111111111111111",
            "currency_code": "GHS",
            "currency_val": "10.50",
            "landing_page": "http://127.0.0.1:9/thanks",
        }
        return await self.collect(**{**card, **fields})

    async def deposit(self, **fields: Any) -> Seen:
        return await self.collect(trans_type="DTTW", **fields)

    async def payout(self, **fields: Any) -> Seen:
        return await self.collect(trans_type="MTC", **fields)

    async def bill(self, **fields: Any) -> Seen:
        bill = {
            "trans_type": "BLP",
            "nw": "ECG",
            "account_number": "200000000001",
            "payment_option": None,
            "customer_number": None,
        }
        return await self.post("/pay_bill", self.payment(**{**bill, **fields}))

    async def airtime(self, **fields: Any) -> Seen:
        airtime = {"trans_type": "ATP", "payment_option": None, **fields}
        return await self.post("/send_airtime", self.payment(**airtime))

    async def status(self, transaction_id: str = "T1", service_id: int | None = None) -> Seen:
        asked = {"service_id": service_id or self.service_id, "transaction_id": transaction_id}
        return await self.post("/get_transaction_status", asked)

    async def balance(self, service_id: int | None = None) -> Seen:
        asked = {"service_id": service_id or self.service_id, "request_time": REQUEST_TIME}
        return await self.post("/get_account_balance", asked)

    async def sms(self, **fields: Any) -> Seen:
        body = {
            "service_id": self.service_id,
            "customer_number": "0244000001",
            "msg_body": "Your code is 1234",
            "sender_id": "Shop",
            **fields,
        }
        return await self.post("/sms/send", {k: v for k, v in body.items() if v is not None})

    async def bulk(self, *recipients: str, **fields: Any) -> Seen:
        body = {
            "service_id": self.service_id,
            "recipients": list(recipients),
            "msg_body": "Sale today",
            "sender_id": "Shop",
            **fields,
        }
        return await self.post("/sms/bulk", {k: v for k, v in body.items() if v is not None})

    async def history(self, **fields: Any) -> Seen:
        return await self.post("/sms/history", {"service_id": self.service_id, **fields})

    async def sms_balance(self, service_id: int | None = None) -> int:
        seen = await self.post("/sms/balance", {"service_id": service_id or self.service_id})
        return int(seen.data["sms_balance"])

    async def stop(self) -> None:
        """Stop the gateway before the test is over."""
        await self.runner.cleanup()

    async def advance(self, **by: float) -> None:
        """Advance the clock by `timedelta(**by)`, and run every job that becomes due."""
        await self.gateway.jobs.advance(timedelta(**by))

    def inbox_url(self, name: str) -> str:
        return f"{self.url}/_sandbox/inbox/{name}"

    async def inbox(self, name: str = "orders") -> list[dict[str, Any]]:
        """The newest hundred deliveries in an inbox, oldest first."""
        async with self.session.get(f"{self.inbox_url(name)}/messages?limit=100") as response:
            messages: list[dict[str, Any]] = (await response.json())["messages"]
            return messages[::-1]

    async def callback(self, name: str = "orders") -> dict[str, Any]:
        """The body of the only delivery in an inbox."""
        (message,) = await self.inbox(name)
        body: dict[str, Any] = message["json"]
        return body


@pytest.fixture(scope="session", autouse=True)
def _fast_path() -> None:
    """With `SANDBOX_SIM_FAST_PATH=false`, as in the second run of CI, that is the default."""
    if os.environ.get("SANDBOX_SIM_FAST_PATH") == "false":
        Settings.model_fields["fast_path"].default = False
        Settings.model_rebuild(force=True)


@pytest.fixture(scope="session", autouse=True)
def _servers_are_left() -> Iterator[None]:
    """End the servers that the tests of this process share."""
    yield
    fork_server.leave()
    postgres.leave()


@pytest.fixture(scope="session")
def _folder_of_the_run() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def in_memory(_folder_of_the_run: Path) -> Path:
    """A folder in memory if the system has one, so that the test does not wait for the disk.

    It is removed when the next test asks for one: by then nothing of this test uses it.
    """
    for folder in _folder_of_the_run.iterdir():
        shutil.rmtree(folder)
    return Path(tempfile.mkdtemp(dir=_folder_of_the_run))


StartSandbox = Callable[..., Awaitable[Sandbox]]


@asynccontextmanager
async def sandboxes() -> AsyncIterator[StartSandbox]:
    """Yield a function that starts a gateway with the given settings, with a frozen clock.

    Every answer that its session reads is checked against the OpenAPI document.
    """
    async with AsyncExitStack() as stack:
        checking = ClientSession(response_class=CheckedResponse)
        session = await stack.enter_async_context(checking)

        async def start(**settings: Any) -> Sandbox:
            chosen = Settings(**{"store": "memory:", **settings})
            gateway = build(chosen, clock=VirtualClock(), ids=RandomIds(seed=1))
            runner = GatewayRunner(gateway.app)
            stack.push_async_callback(runner.cleanup)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            openapi_contract.register(port, gateway, chosen)
            return Sandbox(f"http://127.0.0.1:{port}", gateway, session, runner)

        yield start


@pytest.fixture
async def start_sandbox() -> AsyncIterator[StartSandbox]:
    """Start a gateway with the given settings, on a free port and with a frozen clock."""
    async with sandboxes() as start:
        yield start


@pytest.fixture
async def sandbox(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway with the default settings."""
    return await start_sandbox()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator["Browser"]:
    """Chromium, started once in each process that runs tests with it.

    Such a test runs in the event loop of the session, as Playwright does.
    """
    from tests.demo.browser import launch  # noqa: PLC0415 -- importing Playwright takes 0.6 s

    async with launch() as browser:
        yield browser
