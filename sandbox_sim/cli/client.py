"""The HTTP client of the commands, and the printing of answers.

The client uses the standard library, because that imports quickly. It uses only the public
interface of a running gateway. It ignores proxy settings.
"""

import functools
import http.client
import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Timer
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec
from urllib.parse import quote, urlencode, urlsplit

import click

from sandbox_sim import __version__
from sandbox_sim.values.clients import basic_credentials
from sandbox_sim.values.redaction import printable, printable_document, printable_json

P = ParamSpec("P")

# Seconds for a request that the gateway answers without waiting.
REQUEST_TIMEOUT_S: Final = 30.0
_SHORT_TIMEOUT_S: Final = 2.0
# A larger answer is an error; a list of a thousand records has a few megabytes.
_MAX_BYTES: Final = 256 * 1024 * 1024
# Arguments that are not UTF-8 are sent as the bytes that were typed.
_ENCODING_ERRORS: Final = "surrogateescape"
_MAX_REASON_LENGTH: Final = 500
_USER_AGENT: Final = f"sandbox-sim/{__version__}"

# The errors of code that reads an answer in which a field is missing or has another type.
MISREAD_ERRORS: Final = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
)

# What OpenSSL says when the other side does not speak TLS; which one depends on its version.
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
_START_ADVICE: Final = "start a gateway with `sandbox-sim serve`, or give its address with"
_TRUST_ADVICE: Final = (
    "name the file of its authority in the environment variable SSL_CERT_FILE, and use a name of "
    "the certificate"
)


class CommandFailed(click.ClickException):
    """A command failed: exit code 1, with this message on stderr."""

    def show(self, file: Any = None) -> None:
        """Print the message without click's prefix."""
        for line in self.message.splitlines():
            click.echo(printable(line), err=True, file=file)


class WrongUsage(CommandFailed):
    """The arguments are wrong for every gateway: exit code 2."""

    exit_code = 2


class Unreachable(CommandFailed):
    """There was no HTTP answer; `reason` says why, and `advice` what to do."""

    def __init__(self, address: str, reason: str, advice: str) -> None:
        super().__init__(f"{address} cannot be reached ({reason}): {advice}")
        self.reason = reason


class ControlApiError(CommandFailed):
    """The control API answered with an error; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ReceivedAnswer(NamedTuple):
    """An HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:
        """The parsed text. Raises `ValueError` or `RecursionError` if it is not JSON."""
        return json.loads(self.text)


@contextmanager
def _deadline(connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
    """Close a connection after `seconds`, even while its server still writes.

    Raises `TimeoutError` at the end if it closed the connection.
    """
    passed = Event()

    def close(sock: socket.socket) -> None:
        passed.set()
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = Timer(seconds, close, [connection.sock])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if passed.is_set():
            raise TimeoutError


class RunningGateway:
    """A running gateway. `token` is sent to the control API only.

    option: the one that names the address, for messages.
    """

    def __init__(
        self, endpoint_url: str, token: str | None = None, option: str = "--endpoint-url"
    ) -> None:
        """Raises `WrongUsage`."""
        self.address = endpoint_url.rstrip("/")
        self._option = option
        if token is not None and not token.isprintable():
            raise WrongUsage("--token has characters that an HTTP header cannot carry")
        self._token = token
        problem = f"{option} {endpoint_url!r} is not an http:// or https:// address"
        try:
            parts = urlsplit(self.address)
            self._host, self._port = parts.hostname, parts.port
        except ValueError as error:
            raise WrongUsage(f"{problem}: {error}") from None
        has_blanks = any(map(str.isspace, endpoint_url))
        if has_blanks or parts.scheme not in {"http", "https"} or not self._host:
            raise WrongUsage(problem)
        self._tls = parts.scheme == "https"
        self._base_path = parts.path

    def control(
        self,
        method: str,
        *path: object,
        query: Sequence[tuple[str, object]] = (),
        body: Mapping[str, object] | None = None,
        keep_null: bool = False,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> ReceivedAnswer:
        """Send one request to the control API; `path` has the parts after `/_sandbox/`.

        Query parameters that are None are left out, and so are such fields of the body unless
        `keep_null`.

        Raises `ControlApiError` with the message of an error answer, `Unreachable`, and
        `CommandFailed` if a part of the path is blank, or the server is not a gateway.
        """
        texts = [str(part) for part in path]
        if not all(map(str.strip, texts)):
            raise CommandFailed("the id or name that was given is empty")
        parts = (quote(part, safe="", errors=_ENCODING_ERRORS) for part in texts)
        target = "/".join(("/_sandbox", *parts))
        if pairs := [(name, value) for name, value in query if value is not None]:
            target += "?" + urlencode(pairs, errors=_ENCODING_ERRORS)
        if body is not None and not keep_null:
            body = {name: value for name, value in body.items() if value is not None}
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        answer = self.send(method, target, headers, body, timeout_s)
        document = self._document(answer)
        if answer.status >= 400:
            raise ControlApiError(answer.status, self._error_message(answer.status, document))
        return answer

    def call(
        self,
        path: str,
        body: Mapping[str, object],
        credentials: tuple[str, str],
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> ReceivedAnswer:
        """Send one request to the client interface; return its answer, also if it is a refusal.

        Raises `CommandFailed` if there is no valid answer; its message names the fault that caused
        this, if the journal of the gateway has one.
        """
        headers = {"Authorization": f"Basic {basic_credentials(*credentials)}"}
        try:
            answer = self.send("POST", path, headers, body, timeout_s)
            document = self._document(answer)
        except CommandFailed as failure:
            raise self._find_fault(body) or failure from None
        if "response_code" not in document:
            raise CommandFailed(f"{self.address} answers HTTP {answer.status}: it is not a gateway")
        return answer

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Mapping[str, object] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> ReceivedAnswer:
        """Send one request and return its answer.

        Raises `Unreachable` if the whole answer does not arrive within `timeout_s`.
        """
        sent = {"User-Agent": _USER_AGENT, **headers}
        raw = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            raw = _encode(body)
        try:
            connection = self._connection(timeout_s)
            try:
                encoded = {name: value.encode() for name, value in sent.items()}
                connection.connect()
                with _deadline(connection, timeout_s):
                    connection.request(method, self._base_path + target, raw, encoded)
                    with connection.getresponse() as response:
                        text = _read_body(response).decode("utf-8", "replace")
            finally:
                connection.close()
        except TimeoutError:
            raise self._unreachable(f"no answer within {timeout_s:g} s") from None
        except OSError as error:
            self._refuse_plain_http(error)
            self._refuse_tls(error)
            raise self._unreachable(error.strerror or str(error)) from None
        except (http.client.HTTPException, ValueError) as error:
            self._refuse_plain_http(error)
            raise self._unreachable(str(error) or type(error).__name__) from None
        names = {name.lower(): value for name, value in response.getheaders()}
        return ReceivedAnswer(response.status, names, text)

    def _unreachable(self, reason: str) -> Unreachable:
        return Unreachable(self.address, reason, f"{_START_ADVICE} {self._option}")

    def _refuse_plain_http(self, error: Exception) -> None:
        """Raise `CommandFailed` if plain HTTP failed on a port that speaks TLS.

        Such a port closes the connection, or answers with a TLS alert.
        """
        closed = isinstance(error, ConnectionResetError)  # also `http.client.RemoteDisconnected`
        is_alert = isinstance(error, http.client.BadStatusLine) and str(error).startswith(
            "\x15\x03"
        )
        if self._tls or not (closed or is_alert):
            return
        import ssl  # noqa: PLC0415 -- takes long to import

        host, port = self._host or "", self._port or http.client.HTTP_PORT
        with suppress(OSError):
            ssl.get_server_certificate((host, port), timeout=_SHORT_TIMEOUT_S)  # verifies nothing
            secure = self.address.replace("http", "https", 1)
            raise CommandFailed(f"{self.address} serves HTTPS only: use {self._option} {secure}")

    def _refuse_tls(self, error: OSError) -> None:
        """Raise `CommandFailed` if the server speaks no TLS, or its certificate is not trusted."""
        # Only errors of `ssl` have these two; `ssl` takes long to import.
        if getattr(error, "reason", None) in _NOT_TLS:
            use = f"use {self._option} {self.address.replace('https', 'http', 1)}"
            raise CommandFailed(f"{self.address} serves plain HTTP only: {use}")
        if refused := getattr(error, "verify_message", None):
            reason = f"its certificate is not trusted: {refused}"
            raise Unreachable(self.address, reason, _TRUST_ADVICE)

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        host = self._host or ""
        if not self._tls:
            return http.client.HTTPConnection(host, self._port, timeout=timeout_s)
        # Imported only here, because TLS takes long to import.
        from sandbox_sim.adapters.tls import authority_file, client_context  # noqa: PLC0415
        from sandbox_sim.settings.schema import authority_folder  # noqa: PLC0415

        context = client_context(authority_file(authority_folder()))
        return http.client.HTTPSConnection(host, self._port, timeout=timeout_s, context=context)

    def _find_fault(self, body: Mapping[str, object]) -> CommandFailed | None:
        """The error for a fault that applied to the newest request with these ids; None if none."""
        match = {name: body[name] for name in ("service_id", "transaction_id") if name in body}
        search = {"match": match, "limit": 1}
        try:
            path = ("requests", "find")
            answer = self.control("POST", *path, body=search, timeout_s=_SHORT_TIMEOUT_S)
        except ControlApiError as refused:
            text = f"no complete answer, and the journal cannot be read: {refused.message}"
            return CommandFailed(text) if refused.status == 401 else None
        except CommandFailed:
            return None
        for entry in answer.document.get("requests", ()):
            if entry["rule"] == "fault":
                text = ": ".join((*entry["warnings"][-1:], entry["why"]))
                return CommandFailed(f"{text}; see `sandbox-sim faults list`")
        return None

    def _document(self, answer: ReceivedAnswer) -> dict[str, Any]:
        """Return the JSON object in the body. Raises `CommandFailed` if there is none."""
        prefix = f"{self.address} answers HTTP {answer.status}"
        if 300 <= answer.status < 400:
            where = answer.headers.get("location", "another address")
            advice = f"set {self._option} to the gateway's own address"
            raise CommandFailed(f"{prefix} and redirects to {where}: {advice}")
        try:
            document = answer.document
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise CommandFailed(f"{prefix} with a body that is not JSON: is it a gateway?")
        return document

    def _error_message(self, status: int, document: Mapping[str, Any]) -> str:
        """Return the message of an error; for status 401, also how to give the token."""
        error = document.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        if not message:
            problem = f"{self.address} answers HTTP {status} to a request to the control API"
            return f"{problem}: give the gateway's own address with {self._option}"
        if status == 401:
            return f"{message}: give it with --token or SANDBOX_SIM_TOKEN"
        return str(message)


def _encode(body: Mapping[str, object]) -> bytes:
    """The body as JSON. Raises `WrongUsage` for an argument that is not UTF-8."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        word = error.object[: error.end].rpartition('"')[2]
        raise WrongUsage(f"{word} is not valid UTF-8: use a terminal with UTF-8") from None


def _read_body(response: http.client.HTTPResponse) -> bytes:
    """The whole body. Raises `HTTPException` if it ends early or is too large."""
    content = response.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise http.client.HTTPException(f"its answer is larger than {_MAX_BYTES} bytes")
    if response.length:
        raise http.client.IncompleteRead(content, response.length)
    return content


class Session(NamedTuple):
    """One run of a command."""

    gateway: RunningGateway
    as_json: bool

    def show(self, answer: ReceivedAnswer, lines: Callable[[Any], Iterable[str]]) -> None:
        """Print an answer: with --json its JSON, otherwise the result of `lines`.

        Control characters from the server are removed, so that they cannot act on the terminal.
        """
        if self.as_json:
            click.echo(printable_json(answer.text))
            return
        for line in lines(printable_document(answer.document)):
            click.echo(line)

    def request(
        self, method: str, *path: object, lines: Callable[[Any], Iterable[str]], **given: Any
    ) -> ReceivedAnswer:
        """Send a request to the control API as `control` does, and print its answer."""
        answer = self.gateway.control(method, *path, **given)
        self.show(answer, lines)
        return answer


def with_session(command: Callable[Concatenate[Session, P], None]) -> Callable[P, None]:
    """Make a command get its `Session` as the first argument.

    It raises `CommandFailed` if the answer of the server has missing or unexpected fields.
    """

    @functools.wraps(command)
    def run(*args: P.args, **given: P.kwargs) -> None:
        options = click.get_current_context().obj
        gateway = RunningGateway(options["endpoint_url"], options["token"] or None)
        with reporting_misread(gateway.address):
            command(Session(gateway, options["as_json"]), *args, **given)

    return run


@contextmanager
def reporting_misread(address: str) -> Iterator[None]:
    """Raises `CommandFailed` for an answer of that server that the block cannot read."""
    try:
        yield
    except MISREAD_ERRORS as error:
        reason = " ".join(str(error).split())[:_MAX_REASON_LENGTH]
        raise CommandFailed(
            f"{address} answers with fields that this version does not know "
            f"({type(error).__name__}: {reason})"
        ) from error
