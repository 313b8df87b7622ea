"""The HTTP client that adapters of networks share. Source: D39.

A submit is sent once, on a connection of its own, without redirects. aiohttp repeats PUT, DELETE
and GET when a connection breaks, even a fresh one. A middleware turns the broken connection into an
exception for which it does not repeat.

Whether a byte of a submit can have arrived does not depend on the exception: nothing is written
before there is a connection, and aiohttp reports when there is one.

Requests for tokens and status queries may be repeated. Only aiohttp-retry does that, for named
methods, exceptions and statuses, and not before the time in `Retry-After`.
"""

import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from typing import Final, NamedTuple

import aiohttp
from aiohttp_retry import ExponentialRetry, RetryClient

from sandbox_sim import __version__
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.network import Health, NetworkEvents, SubmitResult
from sandbox_sim.records.attempts import LONGEST_PAUSE
from sandbox_sim.records.exchanges import Exchange, Scrubber
from sandbox_sim.records.reports import Outcome
from sandbox_sim.sockets import KeepAliveConnector

# Longer than any answer of a payment network.
MOST_ANSWER_BYTES: Final = 1024 * 1024

# The maximum number of tries of a token request or status query, and the first pause between them.
MOST_TRIES: Final = 3

FIRST_PAUSE_S: Final = 0.2

# A network that asks for a longer pause is asked again by the schedule of the attempt.
LONGEST_PAUSE_S: Final = 2.0

# Gateways and proxies say so; HTTP 500 and 501 may only mean that the health check is unknown.
_OUT_OF_SERVICE: Final = frozenset({502, 503, 504})

RETRIED_STATUSES: Final = frozenset({429, 502, 503, 504})


class _BrokenExchange(Exception):
    """A connection broke; aiohttp does not repeat the request for this exception."""


_RETRIED_EXCEPTIONS: Final = (aiohttp.ClientConnectionError, _BrokenExchange, TimeoutError)

_HEADERS: Final = {"User-Agent": f"sandbox_sim/{__version__}"}


class HttpAnswer(NamedTuple):
    """A complete answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_server_error(self) -> bool:
        """Whether the HTTP status is 5xx."""
        return self.status >= 500


class NoAnswer(NamedTuple):
    """Why there is no complete answer.

    may_have_arrived: False only if there was no connection, so that nothing was written.
    network_fault: whether the network caused it; the circuit breaker counts these.
    """

    may_have_arrived: bool
    problem: str
    network_fault: bool = True


def submitted(
    answer: HttpAnswer | NoAnswer, read: Callable[[HttpAnswer], SubmitResult]
) -> SubmitResult:
    """The result of a submit; `read` interprets an answer.

    Without an answer it is NOT_SENT only if no byte can have arrived. An UNKNOWN outcome with HTTP
    5xx is a network fault, for the circuit breaker.
    """
    if isinstance(answer, NoAnswer):
        outcome = Outcome.UNKNOWN if answer.may_have_arrived else Outcome.NOT_SENT
        return SubmitResult(outcome, reason=answer.problem, network_fault=answer.network_fault)
    result = read(answer)
    network_fault = answer.is_server_error and result.outcome is Outcome.UNKNOWN
    return replace(result, network_fault=network_fault)


_NOT_OPEN: Final = NoAnswer(
    may_have_arrived=False, problem="the network is not open", network_fault=False
)


class _RetryPolicy(ExponentialRetry):
    """Decides when a query is sent again, and counts the tries."""

    def __init__(self, method: str, clock: Clock, first_pause_s: float) -> None:
        super().__init__(
            attempts=MOST_TRIES,
            start_timeout=first_pause_s / 2,  # it is doubled before the first pause
            max_timeout=LONGEST_PAUSE_S,
            # The statuses are named in `_is_final`, which also looks at Retry-After.
            statuses=set(),
            exceptions=set(_RETRIED_EXCEPTIONS),
            methods={method},
            retry_all_server_errors=False,
            evaluate_response_callback=self._is_final,
        )
        self.tries = 1
        self._clock = clock

    async def _is_final(self, response: aiohttp.ClientResponse) -> bool:
        """Whether the answer is final; True also if the network asks for too long a pause."""
        if response.status not in RETRIED_STATUSES:
            return True
        pause = retry_after(response.headers, self._clock)
        return pause is not None and pause.total_seconds() > LONGEST_PAUSE_S

    def get_timeout(self, attempt: int, response: aiohttp.ClientResponse | None = None) -> float:
        """The pause before the next try, in seconds."""
        self.tries += 1
        if response is not None:
            pause = retry_after(response.headers, self._clock)
            response.close()  # aiohttp-retry leaves it open
            if pause is not None:
                return pause.total_seconds()
        return float(super().get_timeout(attempt))


@dataclass(eq=False, repr=False)
class NetworkHttpClient:
    """Sends the requests of one adapter; reports each to its `NetworkEvents`, scrubbed.

    timeout: of one submit, or of a query with all its tries.
    tls: a TLS context for a network with a private certificate authority; True for any other.
    """

    network: str
    clock: Clock
    scrubber: Scrubber
    timeout: timedelta
    _: KW_ONLY
    tls: ssl.SSLContext | bool = True
    first_pause_s: float = FIRST_PAUSE_S

    def __post_init__(self) -> None:
        self._events: NetworkEvents | None = None
        self._submits: aiohttp.ClientSession | None = None
        self._queries: aiohttp.ClientSession | None = None

    async def open(self, events: NetworkEvents) -> None:
        """Make the sessions; connects to nothing."""
        self._events = events
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_create_end.append(_mark_connected)
        self._submits = self._session(
            aiohttp.TCPConnector(limit=0, force_close=True, ssl=self.tls),
            trace_configs=[tracing],
            middlewares=(_prevent_retry,),
        )
        self._queries = self._session(
            KeepAliveConnector(limit=0, ssl=self.tls), middlewares=(_prevent_retry,)
        )

    async def close(self) -> None:
        """Close every connection; a request under way ends without an answer."""
        for session in (self._submits, self._queries):
            if session is not None:
                await session.close()
        self._submits = self._queries = None

    async def submit(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        attempt_id: str,
        within_s: float | None = None,
    ) -> HttpAnswer | NoAnswer:
        """Send a request that changes something at the network, once.

        within_s: the rest of the timeout after a request for a token, in seconds of real time.
        """
        if self._submits is None:
            return _NOT_OPEN
        state = SimpleNamespace(connected=False)
        began = self.clock.monotonic()
        request = self._submits.request(
            method, url, headers=headers, data=body, allow_redirects=False, trace_request_ctx=state
        )
        answer = await self._answer_or_problem(request, within_s)
        if isinstance(answer, NoAnswer):
            answer = answer._replace(may_have_arrived=state.connected)
        self._report("submit", attempt_id, method, url, headers, body, began, answer)
        return answer

    async def ask(
        self,
        purpose: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        attempt_id: str = "",
    ) -> HttpAnswer | NoAnswer:
        """Send a request that changes nothing, such as a status query; up to three times.

        purpose: `status`, `token` or `health`, for the journal.
        """
        if self._queries is None:
            return _NOT_OPEN
        retries = _RetryPolicy(method, self.clock, self.first_pause_s)
        client = RetryClient(client_session=self._queries, retry_options=retries)
        began = self.clock.monotonic()
        request = client.request(
            method, url, headers=dict(headers), data=body or None, allow_redirects=False
        )
        answer = await self._answer_or_problem(request)
        sent = purpose, attempt_id, method, url, headers, body, began
        self._report(*sent, answer, tries=retries.tries)
        return answer

    def _session(self, connector: aiohttp.TCPConnector, **options: object) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            timeout=aiohttp.ClientTimeout(total=None),
            **options,  # type: ignore[arg-type]
        )

    async def _answer_or_problem(
        self,
        request: AbstractAsyncContextManager[aiohttp.ClientResponse],
        within_s: float | None = None,
    ) -> HttpAnswer | NoAnswer:
        """The answer to a request, or why there is none. Raises only if it is cancelled."""
        network_fault = True
        seconds = self.timeout.total_seconds() if within_s is None else within_s
        try:
            async with self.clock.timeout(seconds), request as response:
                return await _read_answer(response)
        except TimeoutError:
            problem = f"no answer within {seconds:g} s"
        except Exception as error:  # if an adapter raised, the attempt would have no explanation
            problem = _describe_error(error)
            # A value that HTTP cannot carry is not a fault of the network.
            network_fault = not isinstance(error, ValueError)
        return NoAnswer(True, self.scrubber.text(problem), network_fault)

    def _report(
        self,
        purpose: str,
        attempt_id: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        began: float,
        answer: HttpAnswer | NoAnswer,
        *,
        tries: int = 1,
    ) -> None:
        """Report a request and its answer to the journal. began: in seconds of real time."""
        if self._events is None:
            return
        scrub = self.scrubber
        sent = Exchange(
            self.network,
            purpose,
            attempt_id,
            self.clock.now(),
            round((self.clock.monotonic() - began) * 1000),
            method,
            scrub.text(url),
            scrub.headers(headers.items()),
            scrub.body(body),
            tries=tries,
        )
        self._events.exchanged(with_answer(sent, answer, scrub))


def with_answer(sent: Exchange, answer: HttpAnswer | NoAnswer, scrubber: Scrubber) -> Exchange:
    """A request with its answer, or with the reason why there is none."""
    if isinstance(answer, NoAnswer):
        return sent._replace(problem=answer.problem)
    headers, body = scrubber.headers(answer.headers.items()), scrubber.body(answer.body)
    return sent._replace(status=answer.status, answer_headers=headers, answer_body=body)


def health_of(answer: HttpAnswer | NoAnswer, *, credentials: str, path: str = "base_url") -> Health:
    """The health by the answer to a health check, with advice if something is wrong.

    credentials, path: the settings to correct if the network refuses them, or answers 404.
    """
    if isinstance(answer, NoAnswer):
        return Health(ok=False, detail=answer.problem)
    wrong = advice(answer.status, credentials, path)
    if answer.status in _OUT_OF_SERVICE:
        wrong = "the network is out of service; try again, and then ask its operator"
    if wrong:
        return Health(ok=False, detail=f"HTTP {answer.status}: {wrong}")
    return Health(ok=True, detail=f"answers with HTTP {answer.status}")


def advice(status: int, credentials: str, path: str = "base_url") -> str:
    """What to do about HTTP 401, 403 or 404; empty for any other status."""
    match status:
        case 401:
            return f"the network refuses the credentials; correct {credentials}"
        case 403:
            return (
                f"the network denies access to this account; correct {credentials}, or ask the "
                "network to add the address of this server to its list"
            )
        case 404:
            return f"the network does not know this address; correct {path}"
        case _:
            return ""


def retry_after(
    headers: Mapping[str, str], clock: Clock, at_most: timedelta = LONGEST_PAUSE
) -> timedelta | None:
    """How long `Retry-After` asks to wait, in either of its forms; None if it is missing.

    at_most: the `longest_pause` of the network.
    """
    text = headers.get("Retry-After", headers.get("retry-after", "")).strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), at_most)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the second one for a number of many digits
        return None
    if moment.tzinfo is None:
        return None
    return min(max(moment - clock.now(), timedelta(0)), at_most)


async def _prevent_retry(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request once: for the exceptions caught here, aiohttp would repeat some methods."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _BrokenExchange(_describe_error(error)) from error


async def _mark_connected(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _end: object
) -> None:
    context.trace_request_ctx.connected = True


async def _read_answer(response: aiohttp.ClientResponse) -> HttpAnswer:
    """The complete answer. Raises if it ends too early or is too long."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MOST_ANSWER_BYTES:
            raise _BrokenExchange(f"the answer has more than {MOST_ANSWER_BYTES:,} bytes")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpAnswer(response.status, headers, bytes(body))


def _describe_error(error: Exception) -> str:
    """What went wrong, for people."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the host {error.host} is not known"
        case aiohttp.ClientConnectorCertificateError():
            return f"the TLS certificate of {error.host} was not accepted"
        case aiohttp.ClientConnectorSSLError():
            return f"no TLS connection to {error.host}:{error.port}"
        case aiohttp.ClientConnectorError():
            reason = os.strerror(error.errno) if error.errno else str(error)
            return f"no connection to {error.host}:{error.port}: {reason}"
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return "the network closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "the answer ended too early"
        case _:
            return str(error) or type(error).__name__
