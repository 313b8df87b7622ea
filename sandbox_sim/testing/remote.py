"""`RemoteGateway`: a gateway at an address, in which each test has its own service.

It needs the standard library only, so the tests do not need the packages of the server.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from http.client import HTTPException
from typing import Any, Final, NoReturn
from urllib.parse import urlencode, urlsplit

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.testing.expectations import Messages, Records
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Sms, Transaction
from sandbox_sim.testing.service_gateway import ServiceGateway, check_timeout, send, service_ids
from sandbox_sim.values.clients import SANDBOX_CLIENT

URL_VARIABLE: Final = "SANDBOX_SIM_URL"
_CLOCK: Final = SystemClock()
# Seconds of real time after which callbacks are read again; some are never acknowledged.
_POLL_INTERVAL_S: Final = 0.2
_PAGE_SIZE: Final = 100


class RemoteGateway(ServiceGateway):
    """A gateway at an address. Its clock runs, and all its users share it.

    token: its control token, if it has one.
    """

    def __init__(self, url: str, auth: tuple[str, str], token: str | None) -> None:
        """Raises `ValueError` if no gateway answers at the address."""
        super().__init__(auth, service_ids(()))
        self._url = url.rstrip("/")
        self._token = token
        self.aio = RemoteAwaitables(self)
        self._check_reachable()

    @classmethod
    def of_environment(cls) -> "RemoteGateway | None":
        """The gateway at `SANDBOX_SIM_URL`; None if the variable is not set.

        Its credentials are in `SANDBOX_SIM_TOKEN`, `SANDBOX_SIM_CLIENT_KEY` and
        `SANDBOX_SIM_SECRET_KEY`.
        """
        environment = os.environ
        if not environment.get(URL_VARIABLE):
            return None
        auth = (
            environment.get("SANDBOX_SIM_CLIENT_KEY", SANDBOX_CLIENT.client_key),
            environment.get("SANDBOX_SIM_SECRET_KEY", SANDBOX_CLIENT.secret_key),
        )
        return cls(environment[URL_VARIABLE], auth, environment.get("SANDBOX_SIM_TOKEN"))

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return self._url

    @property
    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return datetime.fromisoformat(self._control("clock", None, "GET")["now"])

    def inbox(self, name: str = "callbacks") -> Records[Delivery]:
        """The deliveries to `inbox_url(name)`, oldest first."""
        path = f"inbox/{self._inbox_name(name)}/messages"
        return Records(Delivery, map(Delivery.from_view, self._records(path, "messages")))

    @property
    def callbacks(self) -> Records[Callback]:
        """All callbacks, acknowledged or not."""
        return self._with_requests(
            Records(Callback, map(Callback.from_view, self._own_records("callbacks")))
        )

    @property
    def transactions(self) -> Records[Transaction]:
        """All payments that status queries find."""
        found = self._own_records("transactions")
        findable = (Transaction.from_view(each) for each in found if not each["expired"])
        return self._with_requests(Records(Transaction, findable))

    @property
    def sms(self) -> Messages:
        """All SMS."""
        return self._with_requests(Messages(Sms, map(Sms.from_view, self._own_records("sms"))))

    @property
    def requests(self) -> Records[Request]:
        """All requests of this service, each with its answer and the reason."""
        return Records(Request, map(Request.from_view, self._own_records("requests")))

    def wait_callback(self, *, timeout_s: float = 5, **wanted: object) -> Callback:
        """Return the newest callback with these fields, after an attempt at its receiver.

        Raises `AssertionError` after `timeout_s` of real time, which is at most 600 seconds.
        """
        __tracebackhide__ = True
        check_timeout(timeout_s)
        Records(Callback, ()).where(**wanted)  # refuses wrong fields
        deadline = _CLOCK.monotonic() + timeout_s
        while True:
            callbacks = self.callbacks
            attempted = [each for each in callbacks if each.attempts]
            if matching := Records(Callback, attempted).where(**wanted):
                return matching[-1]
            remaining_s = deadline - _CLOCK.monotonic()
            if remaining_s <= 0:
                mismatch = callbacks.mismatch("a", wanted, matching_are="so, unsent or unanswered")
                raise AssertionError(f"waited {timeout_s:g} s: {mismatch}")
            delivered = sum(each.state == "delivered" for each in callbacks)
            self._wait_delivered(1 + delivered, remaining_s)

    def retry_callbacks(self, any_id: str | None = None) -> Sequence[Callback]:
        """Make the next attempt at all retrying callbacks now, or at one.

        any_id: the id of a callback or of its transaction. Returns the callbacks as they are when
        the attempts begin, because their receivers may be slow. `wait_callback` and `callbacks`
        show the answers.
        """
        __tracebackhide__ = True
        if any_id is None:
            answer = self._control("callbacks/retry", {"service_id": self.service_id})
            return [*map(Callback.from_view, answer["callbacks"])]
        matching = [each for each in self.callbacks if any_id in _ids(each)]
        if len(matching) != 1:
            found = f"{len(matching)} callbacks have the id" if matching else "there is no callback"
            raise ValueError(f"{found} {any_id!r}")
        return [Callback.from_view(self._control(f"callbacks/{matching[0].id}/retry", None))]

    def reset(self) -> None:
        """Delete the state and the inboxes of this service only."""
        self._control("reset", {"service_id": self.service_id})
        for name in self._inboxes:
            self._control(f"inbox/{name}", None, "DELETE")
        self._inboxes = set()

    def begin(self) -> None:
        """Take another, unused `service_id`."""
        self.service_id = next(self._service_ids)

    def advance(self, **_by: float) -> NoReturn:
        """Raise `RuntimeError`: all users of the gateway share the clock."""
        __tracebackhide__ = True
        self._refuse("gateway time is shared by all its users, so a test cannot move it")

    reset_clock = advance

    def renew(self) -> NoReturn:
        """Raise `RuntimeError`: the gateway has other users."""
        __tracebackhide__ = True
        self._refuse("it has other users, so a test can reset only its own service, with reset()")

    def certify(self, _case: str | None = None, **_application: object) -> NoReturn:
        """Raise `RuntimeError`: the cases move the clock."""
        __tracebackhide__ = True
        self._refuse("the cases move gateway time, which is shared by all its users")

    def make(self, **_settings: object) -> NoReturn:
        """Raise `RuntimeError`: settings apply to all users of the gateway."""
        __tracebackhide__ = True
        self._refuse("its settings apply to all its users, so a test cannot choose them")

    def _refuse(self, why: str) -> NoReturn:
        __tracebackhide__ = True
        raise RuntimeError(
            f"the gateway of this test runs at {self.url}: {why}. Unset {URL_VARIABLE}, and the "
            "fixture starts its own gateway, in which this is possible"
        )

    def _check_reachable(self) -> None:
        """Raise `ValueError` unless a gateway answers and accepts the token."""
        hint = f"start one there with `sandbox-sim serve`, or unset {URL_VARIABLE}"
        if urlsplit(self.url).scheme not in {"http", "https"}:
            raise ValueError(f"{URL_VARIABLE} must be an address such as http://127.0.0.1:8233")
        try:
            name = self._control("version", None, "GET")["name"]
        except (LookupError, TypeError):
            name = None
        except (OSError, HTTPException, ValueError) as error:
            text = f"{URL_VARIABLE}: no gateway answers at {self.url} ({error}); {hint}"
            raise ValueError(text) from None
        if name != "sandbox_sim":
            raise ValueError(f"{URL_VARIABLE}: the server at {self.url} is not sandbox_sim; {hint}")
        try:
            self._control("clock", None, "GET")
        except ValueError as error:
            text = f"{URL_VARIABLE}: {self.url} refuses the tests: {error}"
            raise ValueError(f"{text}; set SANDBOX_SIM_TOKEN to its control token") from None

    def _wait_delivered(self, count: int, remaining_s: float) -> None:
        """Return when this service has `count` delivered callbacks, or after a short time."""
        match = {"service_id": self.service_id, "state": "delivered"}
        body = {"match": match, "count": count, "timeout_s": min(remaining_s, _POLL_INTERVAL_S)}
        with suppress(ValueError):  # HTTP 408: the time is over
            self._control("callbacks/wait", body)

    def _own_records(self, plural: str) -> list[dict[str, Any]]:
        return self._records(plural, plural, service_id=self.service_id)

    def _records(self, path: str, plural: str, **query: object) -> list[dict[str, Any]]:
        """All records of a list of the control API, oldest first."""
        found: list[dict[str, Any]] = []
        query["limit"] = _PAGE_SIZE
        while True:
            page = self._control(f"{path}?{urlencode(query)}", None, "GET")
            found += page[plural]
            if page["next"] is None:
                return found[::-1]
            query["after"] = page["next"]

    def _control(
        self, path: str, body: Mapping[str, object] | None, method: str = "POST"
    ) -> dict[str, Any]:
        __tracebackhide__ = True
        url = f"{self.url}/_sandbox/{path}"
        return send(method, url, body, self._token)


class RemoteAwaitables:
    """The calls that wait for the application under test, without blocking its event loop."""

    def __init__(self, gateway: RemoteGateway) -> None:
        self._gateway = gateway

    async def advance(self, **by: float) -> NoReturn:
        """Raise `RuntimeError`, as `RemoteGateway.advance` does."""
        __tracebackhide__ = True
        self._gateway.advance(**by)

    async def retry_callbacks(self, any_id: str | None = None) -> Sequence[Callback]:
        """`RemoteGateway.retry_callbacks`."""
        __tracebackhide__ = True
        return await asyncio.to_thread(self._gateway.retry_callbacks, any_id)

    async def wait_callback(self, *, timeout_s: float = 5, **wanted: object) -> Callback:
        """`RemoteGateway.wait_callback`."""
        __tracebackhide__ = True
        gateway = self._gateway
        return await asyncio.to_thread(gateway.wait_callback, timeout_s=timeout_s, **wanted)


def _ids(callback: Callback) -> set[str]:
    return {callback.id, callback.transaction_id, callback.network_transaction_id}
