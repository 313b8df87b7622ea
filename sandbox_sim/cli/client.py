"""The HTTP client of the commands. It uses the standard library, because that imports quickly.

It uses only the public interface of a running gateway, and no proxy.
"""

import base64
import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import click

from sandbox_sim import __version__
from sandbox_sim.cli.tables import printable

# Seconds for an answer that comes at once.
REQUEST_TIMEOUT_S: Final = 30.0
_BRIEFLY_S: Final = 5.0
# Arguments that are not UTF-8 are sent as the bytes that were typed.
_AS_GIVEN: Final = "surrogateescape"
_USER_AGENT: Final = f"sandbox-sim/{__version__}"


class Failure(click.ClickException):
    """A command failed: exit code 1, with this message on stderr."""

    def show(self, file: Any = None) -> None:
        """Print the message without click's prefix."""
        for line in self.message.splitlines():
            click.echo(printable(line), err=True, file=file)


class WrongUsage(Failure):
    """The arguments cannot work with any gateway: exit code 2."""

    exit_code = 2


class Unreachable(Failure):
    """No HTTP answer came; `reason` says what happened instead."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"{address} cannot be reached ({reason}): start a gateway with `sandbox-sim serve`, "
            "or say with --endpoint-url where one is"
        )
        self.reason = reason


class Refused(Failure):
    """The control API answered with an error; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Answer(NamedTuple):
    """An HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str


class Gateway:
    """A running gateway. `token` is sent to the control API only."""

    def __init__(self, endpoint_url: str, token: str | None = None) -> None:
        self.address = endpoint_url.rstrip("/")
        if token is not None and not token.isprintable():
            raise WrongUsage("--token holds what no header can carry")
        self._token = token
        try:
            parts = urlsplit(self.address)
            self._host, self._port = parts.hostname, parts.port
        except ValueError as error:
            raise WrongUsage(f"--endpoint-url {endpoint_url}: {error}") from None
        if parts.scheme not in {"http", "https"} or not self._host:
            raise WrongUsage(f"--endpoint-url {endpoint_url} is no http address")
        self._tls = parts.scheme == "https"
        self._base_path = parts.path

    def control(
        self,
        method: str,
        *path: object,
        query: Sequence[tuple[str, object]] = (),
        body: Mapping[str, object] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Answer:
        """Send one request to the control API, to `/_sandbox/` and the parts of the path.

        Raises `Refused` with the message of an error answer, and `Unreachable`.
        """
        parts = (quote(str(part), safe="", errors=_AS_GIVEN) for part in path)
        target = "/".join(("/_sandbox", *parts))
        if query:
            target += "?" + urlencode(query, errors=_AS_GIVEN)
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        answer = self.send(method, target, headers, body, timeout_s)
        document = self._document(answer)
        if answer.status >= 400:
            raise Refused(answer.status, self._error_message(answer.status, document))
        return answer

    def call(
        self,
        path: str,
        body: Mapping[str, object],
        credentials: tuple[str, str],
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Answer:
        """Send one request to the gateway's own interface, and return every kind of answer.

        Raises `Failure` if no valid answer comes; it names the fault that caused this, if the
        journal of the gateway has one.
        """
        pair = base64.b64encode(":".join(credentials).encode(errors=_AS_GIVEN)).decode()
        headers = {"Authorization": f"Basic {pair}"}
        try:
            answer = self.send("POST", path, headers, body, timeout_s)
            document = self._document(answer)
        except Failure as failure:
            raise self._fault_of(body) or failure from None
        if "response_code" not in document:
            raise Failure(f"{self.address} answers HTTP {answer.status}, not as a gateway does")
        return answer

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Mapping[str, object] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Answer:
        """Send one request and return its answer. Raises `Unreachable`."""
        sent = {"User-Agent": _USER_AGENT, **headers}
        raw = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            raw = json.dumps(body).encode()
        try:
            connection = self._connection(timeout_s)
            try:
                encoded = {name: value.encode() for name, value in sent.items()}
                connection.request(method, self._base_path + target, raw, encoded)
                response = connection.getresponse()
                text = response.read().decode("utf-8", "replace")
            finally:
                connection.close()
        except TimeoutError:
            raise Unreachable(self.address, f"no answer within {timeout_s:g} s") from None
        except OSError as error:
            raise Unreachable(self.address, error.strerror or str(error)) from None
        except (http.client.HTTPException, ValueError) as error:
            raise Unreachable(self.address, str(error) or type(error).__name__) from None
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, text)

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        host = self._host or ""
        if not self._tls:
            return http.client.HTTPConnection(host, self._port, timeout=timeout_s)
        # Imported only here, because TLS takes long to import.
        from sandbox_sim.adapters.tls import authority_file, client_context  # noqa: PLC0415
        from sandbox_sim.config import authority_folder  # noqa: PLC0415

        context = client_context(authority_file(authority_folder()))
        return http.client.HTTPSConnection(host, self._port, timeout=timeout_s, context=context)

    def _fault_of(self, body: Mapping[str, object]) -> Failure | None:
        """Return what a fault did to the newest request with these ids; None without a fault."""
        match = {name: body[name] for name in ("service_id", "transaction_id") if name in body}
        search = {"match": match, "limit": 1}
        try:
            answer = self.control("POST", "requests", "find", body=search, timeout_s=_BRIEFLY_S)
        except Refused as refused:
            text = f"no whole answer came, and why cannot be seen: {refused.message}"
            return Failure(text) if refused.status == 401 else None
        except Failure:
            return None
        for entry in json.loads(answer.text).get("requests", ()):
            if entry["rule"] == "fault":
                text = ": ".join((*entry["warnings"][-1:], entry["why"]))
                return Failure(f"{text}; see `sandbox-sim faults list`")
        return None

    def _document(self, answer: Answer) -> dict[str, Any]:
        """Return the JSON object of an answer. Raises `Failure` if it is none: not a gateway."""
        try:
            document = json.loads(answer.text)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise Failure(
                f"{self.address} answers HTTP {answer.status} and no JSON: is it a gateway?"
            )
        return document

    def _error_message(self, status: int, document: Mapping[str, Any]) -> str:
        """Return the message of an error; if the token is missing, also how to give it."""
        error = document.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        if status == 401:
            return f"{message}: give it by --token or SANDBOX_SIM_TOKEN"
        return str(message or f"{self.address} answers HTTP {status}")
