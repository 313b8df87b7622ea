"""Asks the application under test: places an order, reads its state, counts its receipts.

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
from threading import Event
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.certify.cases import CertifyCase, Placed, State
from sandbox_sim.certify.configuration import Configuration, Question
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.json_text import map_texts
from sandbox_sim.values.msisdn import to_international

if TYPE_CHECKING:
    from sandbox_sim.testing import Request

RESTART: Final = timedelta(seconds=60)
# What a reader of a page does not see.
_UNSEEN: Final = re.compile(r"<(head|script|style)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
_MARKUP: Final = re.compile(_UNSEEN.pattern + "|<[^>]*>", re.DOTALL | re.IGNORECASE)
_MOST_BYTES: Final = 4 * 1024 * 1024


class ApplicationUnreachable(Exception):
    """The application cannot be asked; the text says what was tried and what came."""


class ApplicationDisconnects(ApplicationUnreachable):
    """The application took a request, and closed the connection without an answer."""


class OrderUnreadable(Exception):
    """The application answers, and its answer has no state; the text has its beginning."""


class OrderRefused(Exception):
    """The application placed no order. status: that of its HTTP answer, 0 if there is none."""

    def __init__(self, status: int = 0, answer: str = "") -> None:
        super().__init__(answer)
        self.status = status


class ApplicationHangs(Exception):
    """The application did not answer in time."""


class ApplicationTime(Protocol):
    """The time that the application lives in; the clock of the gateway is another one."""

    def monotonic(self) -> float:
        """The time in seconds, for durations only."""

    def wait(self, seconds: float, work: Future[Any] | None = None) -> None:
        """Let so much time pass; less where this work ends before."""


class MachineTime:
    """The time of the machine."""

    monotonic = staticmethod(SystemClock.monotonic)

    def wait(self, seconds: float, work: Future[Any] | None = None) -> None:
        """Sleep, until the work has ended at most."""
        if work is None:
            Event().wait(seconds)
        else:
            wait([work], seconds)


class Application(Protocol):
    """The application under test. time: the one that it lives in."""

    @property
    def time(self) -> ApplicationTime:
        """The time that its reactions take."""

    def lacks(self, case: CertifyCase) -> str | None:
        """Why a case cannot be tried with it; None where it can."""

    def place(self, order: Placed, reference: str, within: timedelta) -> str:
        """Place an order; its number.

        Raises `OrderRefused`, `ApplicationUnreachable`, and `ApplicationHangs` after this time.
        """

    def refund(self, order: str, within: timedelta) -> None:
        """Give the money of a paid order back. Raises the last two of `place`."""

    def state(self, order: str) -> State:
        """The state of an order. Raises `ApplicationUnreachable` and `OrderUnreadable`."""

    def receipts(self, order: str) -> int | None:
        """How many receipts it sent for an order; None where SMS of the gateway are counted."""

    def restart(self) -> None:
        """Stop the application, and start it again. Raises `ApplicationUnreachable`."""


class ApplicationAnswer(NamedTuple):
    """What came: the HTTP status (0 where a command succeeded), and all text with headers."""

    status: int
    text: str
    body: str


class ConfiguredApplication:
    """The application as certify.toml says."""

    def __init__(self, configuration: Configuration, gateway_url: str) -> None:
        self.time: ApplicationTime = MachineTime()
        self._configuration = configuration
        self._gateway_url = gateway_url

    def lacks(self, case: CertifyCase) -> str | None:
        """Why a case cannot be tried with it: certify.toml lacks what the case needs."""
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
                Placed.model_fields[name].default
            }
            if differs and not any(map(configuration.order.names, (name, f"{name}_233"))):
                return f"the order in {configuration.file} has no {{{name}}}"
        return None

    def place(self, order: Placed, reference: str, within: timedelta) -> str:
        """Place an order."""
        by_card = self._configuration.card_order if order.pay_by == "card" else None
        question = by_card or self._configuration.order
        values = {
            "phone": order.phone,
            "phone_233": to_international(order.phone),
            "network": order.network,
            "amount": order.amount,
            "reference": reference,
        }
        answer = self._ask(question, values, within)
        if question.field is None and question.pattern is None:
            return reference
        found = _wanted(question, answer)
        if found is not None:
            return found
        if answer.status < 400:
            found_nothing = f"order.{question.wanted} finds no number in the answer"
            raise ApplicationUnreachable(f"{found_nothing}: {_short(answer, question)}")
        raise OrderRefused(answer.status, _short(answer))

    def refund(self, order: str, within: timedelta) -> None:
        """Give the money of a paid order back."""
        if self._configuration.refund is not None:
            self._ask(self._configuration.refund, {"order": order}, within)

    def state(self, order: str) -> State:
        """The state of an order."""
        question = self._configuration.state
        answer = self._ask(question, {"order": order}, self._patience)
        word = _wanted(question, answer)
        if word is None:
            found_nothing = f"state.{question.wanted} finds no state in the answer"
            raise OrderUnreadable(f"{found_nothing}: {_short(answer, question)}")
        for state, words in self._configuration.words.items():
            if word in words:
                return state
        raise ApplicationUnreachable(
            f"state: {word!r} is not listed in [words] of {self._configuration.file}"
        )

    def receipts(self, order: str) -> int | None:
        """How many receipts it sent."""
        question = self._configuration.application.receipts
        if not isinstance(question, Question):
            return None
        text = _wanted(question, self._ask(question, {"order": order}, self._patience)) or ""
        if not text.isdigit():
            raise ApplicationUnreachable(f"receipts: {text!r} is not a number")
        return int(text)

    def restart(self) -> None:
        """Run the command of `restart`."""
        try:
            _run(self._configuration.application.restart or "false", RESTART)
        except ApplicationHangs as error:
            raise ApplicationUnreachable(
                f"application.restart must end, and leave the application running: {error}"
            ) from None

    @property
    def _patience(self) -> timedelta:
        own = self._configuration.application
        return max(own.gives_up_after + own.reacts_within, timedelta(seconds=5))

    def _ask(
        self, question: Question, values: Mapping[str, str], within: timedelta
    ) -> ApplicationAnswer:
        service_id = str(self._configuration.application.service_id)
        known = {"gateway": self._gateway_url, "service_id": service_id, **values}
        if question.command is not None:
            return _run(filled(question.command, known, shlex.quote), within)
        return _call(question, known, within)


def filled(text: str, values: Mapping[str, str], quoted: Any = str) -> str:
    """The text with its placeholders replaced."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", quoted(value))
    return text


def _filled_value(text: str, values: Mapping[str, str]) -> str | float:
    """A text of JSON with its placeholders replaced; some of them alone become numbers."""
    if text == "{amount}" and "amount" in values:
        return float(values["amount"])
    if text == "{service_id}":
        return int(values["service_id"])
    return filled(text, values)


def _call(question: Question, values: Mapping[str, str], within: timedelta) -> ApplicationAnswer:
    address = filled(question.url or "", values, lambda value: quote(value, safe=":/"))
    secrets = question.headers.items()
    headers = {name: filled(value.get_secret_value(), values) for name, value in secrets}
    body: str | None = None
    if question.body is not None:
        body = json.dumps(map_texts(question.body, lambda text: _filled_value(text, values)))
        headers = {"Content-Type": "application/json", **headers}
    if question.form is not None:
        body = urlencode({name: filled(each, values) for name, each in question.form.items()})
        headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    method = question.method or ("GET" if body is None else "POST")
    return send(method, address, None if body is None else body.encode(), headers, within)


def send(
    method: str,
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    within: timedelta,
    tls: SSLContext | None = None,
) -> ApplicationAnswer:
    """Send a request; redirects are not followed. tls: what is trusted in place of the default.

    Raises `ApplicationUnreachable`, or `ApplicationDisconnects`; `ApplicationHangs` after `within`.
    """
    parts = urlsplit(url)
    place = parts.hostname or "", parts.port
    patience = within.total_seconds()
    connection = http.client.HTTPConnection(*place, timeout=patience)
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(*place, timeout=patience, context=tls)
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        text = response.read(_MOST_BYTES).decode("utf-8", "replace")
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
        raise ApplicationUnreachable(f"{method} {url} failed: {why}") from None
    finally:
        connection.close()


def _run(command: str, within: timedelta) -> ApplicationAnswer:
    """Run a command in the shell. What it leaves in the background stays, also in a restart."""
    with TemporaryFile() as written, TemporaryFile() as complaint:
        process = subprocess.Popen(  # noqa: S603 -- the user wrote the command
            ("/bin/sh", "-c", command),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=complaint,
            start_new_session=True,  # so that what the command has started can be ended with it
        )
        try:
            code = process.wait(within.total_seconds())
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise ApplicationHangs(f"a command did not end in time: {command}") from None
            raise
        output, why = _text(written), _text(complaint)
    if code != 0:
        raise ApplicationUnreachable(f"a command exits with {code}: {command}: {why}")
    return ApplicationAnswer(0, output, output)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_BYTES).decode("utf-8", "replace").strip()


def _wanted(question: Question, answer: ApplicationAnswer) -> str | None:
    """The text that the question asks for; None where the answer has none."""
    if question.pattern is not None:
        match = re.search(question.pattern, answer.text)
        return None if match is None else match[1].strip()
    if question.field is None:
        return answer.body.strip() or None
    try:
        found = json.loads(answer.body)
        for part in question.field.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
    except (ValueError, LookupError, TypeError):
        return None
    return None if found is None or isinstance(found, dict | list) else str(found)


def _short(answer: ApplicationAnswer, question: Question | None = None) -> str:
    """How the answer begins. question: its pattern may be about headers and tags, so show them."""
    text = answer.body or answer.text
    if question is not None and question.pattern is not None:
        location = re.search("^Location: .*", answer.text, re.MULTILINE)
        text = _UNSEEN.sub(" ", answer.body) if location is None else location[0]
    else:
        text = _MARKUP.sub(" ", text)
    begins = " ".join(text.split())[:120]
    return f"HTTP {answer.status}, {begins}" if answer.status else begins or "no output"


_FORM: Final = "application/x-www-form-urlencoded"


class CardPageVisit:
    """A browser with the page that the gateway gave for a card payment.

    request: the one that began the payment. within: how long the application may take to answer.
    """

    def __init__(
        self, request: "Request", gateway_url: str, settings: Settings, within: timedelta
    ) -> None:
        """gateway_url: where the pages are. Raises `ValueError` where the gateway gave no page."""
        answer: Any = request.answer
        body: Any = request.body
        if "redirect_url" not in answer:
            raise ValueError(f"card: the gateway gave no card page: {request.why}")
        self._gateway_url = gateway_url
        self._page = f"{gateway_url}/_sandbox/{answer['redirect_url'].rpartition('/_sandbox/')[2]}"
        self._landing: str = body["landing_page"]
        self._settings = settings
        self._within = within

    def do(self, choice: str) -> None:
        """Open the page, and choose there. choice: open, pay, fail, cancel, or return."""
        if choice == "return":
            return
        self._ask("GET", None)
        if choice != "open":
            number = next(iter(self._settings.behaviour().test_cards), "")
            self._ask("POST", urlencode({"choice": choice, "card_number": number}).encode())

    def land(self) -> ApplicationAnswer:
        """Go to the landing page that the application gave. Raises as `send` does."""
        return send("GET", self._landing, None, {"Accept": "text/html"}, self._within)

    def _ask(self, method: str, form: bytes | None) -> None:
        headers = {"Content-Type": _FORM, "Origin": self._gateway_url}
        tls = None
        if self._settings.trusted is not None:
            # Imported only here, as most gateways of tests speak plain HTTP.
            from sandbox_sim.adapters.tls import client_context  # noqa: PLC0415

            tls = client_context(self._settings.trusted)
        send(method, self._page, form, headers, self._within, tls)
