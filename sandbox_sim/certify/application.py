"""Calls the application under test: places an order, reads its state, counts its receipts.

`CardPageVisit` is what its customer does with a browser on the hosted card page.
"""

import http.client
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import Future, wait
from datetime import timedelta
from ssl import SSLContext
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.certify.cases import CertifyCase, PlacedOrder, State
from sandbox_sim.certify.configuration import ApplicationRequest, Configuration
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.json_text import map_texts
from sandbox_sim.values.msisdn import to_international

if TYPE_CHECKING:
    from sandbox_sim.testing import Request

RESTART_TIMEOUT: Final = timedelta(seconds=60)
# Elements that a browser does not show.
_INVISIBLE: Final = re.compile(r"<(head|script|style)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
_TAGS: Final = re.compile(_INVISIBLE.pattern + "|<[^>]*>", re.DOTALL | re.IGNORECASE)
_MAX_BYTES: Final = 4 * 1024 * 1024


class ApplicationUnreachable(Exception):
    """The application cannot be reached; the text says what was sent and what came back."""


class ApplicationDisconnects(ApplicationUnreachable):
    """The application accepted a request, and closed the connection without an answer."""


class ConnectionRefused(ApplicationUnreachable):
    """The application does not listen at this address."""


class OrderUnreadable(Exception):
    """The answer of the application has no state; the text has the beginning of the answer."""


class OrderRefused(Exception):
    """The application placed no order. status: the HTTP status of its answer, 0 without one."""

    def __init__(self, status: int = 0, answer: str = "") -> None:
        super().__init__(answer)
        self.status = status


class ApplicationHangs(Exception):
    """The application did not answer in time."""


class ApplicationTime(Protocol):
    """The time of the application; the clock of the gateway is another one."""

    def monotonic(self) -> float:
        """The time in seconds, for durations only."""

    def wait(self, seconds: float, work: Future[Any] | None = None) -> None:
        """Wait for this time, or until this work has ended if that is earlier."""


class RealTime:
    """The time of the machine."""

    monotonic = staticmethod(SystemClock.monotonic)

    def wait(self, seconds: float, work: Future[Any] | None = None) -> None:
        """Wait for this time, or until this work has ended if that is earlier."""
        wait([work or Future()], seconds)


class Application(Protocol):
    """The application under test."""

    @property
    def time(self) -> ApplicationTime:
        """The time that its reactions take."""

    def why_not_applicable(self, case: CertifyCase) -> str | None:
        """Why a case cannot be run with it; None if it can."""

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        """Place an order; return its number.

        Raises `OrderRefused`, `ApplicationUnreachable`, and `ApplicationHangs` after this time.
        """

    def refund(self, order: str, within: timedelta) -> None:
        """Refund a paid order. Raises `ApplicationUnreachable` and `ApplicationHangs`."""

    def state(self, order: str) -> State:
        """The state of an order. Raises `ApplicationUnreachable` and `OrderUnreadable`."""

    def receipts(self, order: str) -> int | None:
        """How many receipts it sent for an order; None if the SMS of the gateway are counted."""

    def restart(self) -> None:
        """Stop the application, and start it again. Raises `ApplicationUnreachable`."""


class ApplicationAnswer(NamedTuple):
    """The HTTP status (0 if a command succeeded), the text with headers, and the body alone."""

    status: int
    text: str
    body: str


class ConfiguredApplication:
    """The application that certify.toml describes."""

    def __init__(self, configuration: Configuration, gateway_url: str) -> None:
        self.time: ApplicationTime = RealTime()
        self._configuration = configuration
        self._gateway_url = gateway_url

    def why_not_applicable(self, case: CertifyCase) -> str | None:
        """Why a case cannot be run with it: certify.toml lacks what the case needs."""
        configuration = self._configuration
        if case.sms and configuration.application.receipts != "sms":
            return f'application.receipts in {configuration.file} is not "sms"'
        if case.restarts("application") and configuration.application.restart is None:
            return f"{configuration.file} has no application.restart"
        if configuration.card_order is None and case.is_about_cards:
            return f"{configuration.file} has no [card_order]"
        if configuration.refund is None and "refund" in case.verbs:
            return f"{configuration.file} has no [refund]"
        for name in ("phone", "amount"):
            differs = {getattr(each, name) for each in case.orders} != {
                PlacedOrder.model_fields[name].default
            }
            if differs and not any(map(configuration.order.has_placeholder, (name, f"{name}_233"))):
                return f"the order in {configuration.file} has no {{{name}}}"
        return None

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        """Place an order."""
        card_order = self._configuration.card_order if order.pay_by == "card" else None
        request = card_order or self._configuration.order
        values = {
            "phone": order.phone,
            "phone_233": to_international(order.phone),
            "network": order.network,
            "amount": order.amount,
            "reference": reference,
        }
        answer = self._send(request, values, within)
        if request.field is None and request.pattern is None:
            return reference
        found = _extracted(request, answer)
        if found is not None:
            return found
        if answer.status < 400:
            found_nothing = f"order.{request.extractor} finds no number in the answer"
            raise ApplicationUnreachable(f"{found_nothing}: {_excerpt(answer, request)}")
        raise OrderRefused(answer.status, _excerpt(answer))

    def refund(self, order: str, within: timedelta) -> None:
        """Refund a paid order."""
        if self._configuration.refund is not None:
            self._send(self._configuration.refund, {"order": order}, within)

    def state(self, order: str) -> State:
        """The state of an order."""
        request = self._configuration.state
        answer = self._send(request, {"order": order}, self._answer_timeout)
        word = _extracted(request, answer)
        if word is None:
            found_nothing = f"state.{request.extractor} finds no state in the answer"
            raise OrderUnreadable(f"{found_nothing}: {_excerpt(answer, request)}")
        for state, words in self._configuration.words.items():
            if word in words:
                return state
        raise ApplicationUnreachable(
            f"state: {word!r} is not listed in [words] of {self._configuration.file}"
        )

    def receipts(self, order: str) -> int | None:
        """How many receipts it sent."""
        request = self._configuration.application.receipts
        if not isinstance(request, ApplicationRequest):
            return None
        answer = self._send(request, {"order": order}, self._answer_timeout)
        text = _extracted(request, answer) or ""
        if not text.isdigit():
            raise ApplicationUnreachable(f"receipts: {text!r} is not a number")
        return int(text)

    def restart(self) -> None:
        """Run the command of `restart`."""
        try:
            _run(self._configuration.application.restart or "false", RESTART_TIMEOUT)
        except ApplicationHangs as error:
            raise ApplicationUnreachable(
                f"application.restart must end, and leave the application running: {error}"
            ) from None

    @property
    def _answer_timeout(self) -> timedelta:
        terms = self._configuration.application
        return max(terms.gives_up_after + terms.reacts_within, timedelta(seconds=5))

    def _send(
        self, request: ApplicationRequest, values: Mapping[str, str], within: timedelta
    ) -> ApplicationAnswer:
        service_id = str(self._configuration.application.service_id)
        all_values = {"gateway": self._gateway_url, "service_id": service_id, **values}
        if request.command is not None:
            return _run(fill(request.command, all_values, shlex.quote), within)
        return _send_http(request, all_values, within)


def fill(text: str, values: Mapping[str, str], quote_value: Any = str) -> str:
    """The text with its placeholders replaced."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", quote_value(value))
    return text


def _fill_value(text: str, values: Mapping[str, str]) -> str | float:
    """The text with its placeholders replaced; an amount or service_id alone is a number."""
    if text == "{amount}" and "amount" in values:
        return float(values["amount"])
    if text == "{service_id}":
        return int(values["service_id"])
    return fill(text, values)


def _send_http(
    request: ApplicationRequest, values: Mapping[str, str], within: timedelta
) -> ApplicationAnswer:
    address = fill(request.url or "", values, lambda value: quote(value, safe=":/"))
    secrets = request.headers.items()
    headers = {name: fill(value.get_secret_value(), values) for name, value in secrets}
    body: str | None = None
    if request.body is not None:
        body = json.dumps(map_texts(request.body, lambda text: _fill_value(text, values)))
        headers = {"Content-Type": "application/json", **headers}
    if request.form is not None:
        body = urlencode({name: fill(each, values) for name, each in request.form.items()})
        headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    method = request.method or ("GET" if body is None else "POST")
    return send(method, address, None if body is None else body.encode(), headers, within)


def send(
    method: str,
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    within: timedelta,
    tls: SSLContext | None = None,
) -> ApplicationAnswer:
    """Send a request; redirects are not followed. tls: replaces the default context.

    Raises `ApplicationUnreachable`, or `ApplicationDisconnects`; `ApplicationHangs` after `within`.
    """
    parts = urlsplit(url)
    place = parts.hostname or "", parts.port
    timeout_s = within.total_seconds()
    connection = http.client.HTTPConnection(*place, timeout=timeout_s)
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(*place, timeout=timeout_s, context=tls)
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        text = response.read(_MAX_BYTES).decode("utf-8", "replace")
        # Some servers write the names of headers in lower case.
        head = "".join(f"{name.title()}: {value}\n" for name, value in response.getheaders())
        return ApplicationAnswer(response.status, f"{head}\n{text}", text)
    except TimeoutError:
        raise ApplicationHangs(
            f"{method} {url} had no answer within {within.total_seconds():g} s"
        ) from None
    except ConnectionResetError:
        raise ApplicationDisconnects(
            f"{method} {url}: it closed the connection without an answer"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or repr(error)
        is_refused = isinstance(error, ConnectionRefusedError)
        kind = ConnectionRefused if is_refused else ApplicationUnreachable
        raise kind(f"{method} {url} failed: {why}") from None
    finally:
        connection.close()


def _run(command: str, within: timedelta) -> ApplicationAnswer:
    """Run a command in the shell. Processes that it leaves in the background go on."""
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        process = subprocess.Popen(  # noqa: S603 -- the user wrote the command
            ("/bin/sh", "-c", command),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,  # so that `killpg` also ends the children of the command
        )
        try:
            code = process.wait(within.total_seconds())
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise ApplicationHangs(f"a command did not end in time: {command}") from None
            raise
        output, why = _read_output(stdout), _read_output(stderr)
    if code != 0:
        raise ApplicationUnreachable(f"a command exits with {code}: {command}: {why}")
    return ApplicationAnswer(0, output, output)


def _read_output(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MAX_BYTES).decode("utf-8", "replace").strip()


def _extracted(request: ApplicationRequest, answer: ApplicationAnswer) -> str | None:
    """The text that the request extracts from the answer; None if the answer does not have it."""
    if request.pattern is not None:
        match = re.search(request.pattern, answer.text)
        return match and match[1] and match[1].strip()
    if request.field is None:
        return answer.body.strip() or None
    try:
        found = json.loads(answer.body)
        for part in request.field.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
    except (ValueError, LookupError, TypeError):
        return None
    return None if found is None or isinstance(found, dict | list) else str(found)


def _excerpt(answer: ApplicationAnswer, request: ApplicationRequest | None = None) -> str:
    """The beginning of the answer. request: with a pattern, headers and tags are shown too."""
    text = answer.body or answer.text
    if request is not None and request.pattern is not None:
        location = re.search("^Location: .*", answer.text, re.MULTILINE)
        text = _INVISIBLE.sub(" ", answer.body) if location is None else location[0]
    else:
        text = _TAGS.sub(" ", text)
    beginning = " ".join(text.split())[:120]
    return f"HTTP {answer.status}, {beginning}" if answer.status else beginning or "no output"


_FORM: Final = "application/x-www-form-urlencoded"


class CardPageVisit:
    """A browser on the page that the gateway gave for a card payment.

    request: the one that began the payment. within: the time in which the application must answer.
    """

    def __init__(
        self, request: "Request", gateway_url: str, settings: Settings, within: timedelta
    ) -> None:
        """Raises `ValueError` if the gateway gave no page."""
        answer: Any = request.answer
        body: Any = request.body
        if "redirect_url" not in answer:
            raise ValueError(f"card: the gateway gave no card page: {request.why}")
        self._gateway_url = gateway_url
        self._page = f"{gateway_url}/_sandbox/{answer['redirect_url'].rpartition('/_sandbox/')[2]}"
        self._landing: str = body["landing_page"]
        self._settings = settings
        self._within = within

    def choose(self, choice: str) -> None:
        """Open the page, and choose there. choice: open, pay, fail, cancel, or return."""
        if choice == "return":
            return
        self._send("GET", None)
        if choice != "open":
            number = next(iter(self._settings.behaviour().test_cards), "")
            self._send("POST", urlencode({"choice": choice, "card_number": number}).encode())

    def open_landing_page(self) -> ApplicationAnswer:
        """Open the landing page that the application gave. Raises as `send` does."""
        return send("GET", self._landing, None, {"Accept": "text/html"}, self._within)

    def _send(self, method: str, form: bytes | None) -> None:
        headers = {"Content-Type": _FORM, "Origin": self._gateway_url}
        tls = None
        if self._settings.trusted is not None:
            # Imported only here, as most gateways of tests speak plain HTTP.
            from sandbox_sim.adapters.tls import client_context  # noqa: PLC0415

            tls = client_context(self._settings.trusted)
        send(method, self._page, form, headers, self._within, tls)
