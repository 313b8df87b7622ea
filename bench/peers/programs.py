"""The programs that are compared: how each is installed and started, and what it answers.

Each is asked for the nearest thing to a payment that it can answer, and each answer is checked.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.requests import AUTHORIZATION, payment

# Seconds that a registry has for one program.
_INSTALL_S: Final = 600
_UNSIGNED: Final = (
    "Credential=x/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"
)
_SQS: Final = (
    f"Authorization: AWS4-HMAC-SHA256 {_UNSIGNED}",
    "Content-Type: application/x-amz-json-1.0",
)
_BASIC: Final = (f"Authorization: {AUTHORIZATION}", "Content-Type: application/json")
_ANSWER: Final = {"response_code": "202", "response_message": "Request successfully received"}


class NotAvailable(Exception):
    """A program that cannot be installed or started here; the text says why."""


@dataclass(frozen=True)
class Request:
    """A POST, and the status and the field that its right answer has.

    body, headers: with `%d` in place of a number.
    """

    path: str
    body: str
    status: int
    field: str
    headers: Sequence[str] = _BASIC

    def bytes_of(self, number: int) -> bytes:
        """The request with this number, which has ten digits."""
        length = len(self.body.replace("%d", "0" * 10))
        lines = (
            f"POST {self.path} HTTP/1.1",
            *("Host: 127.0.0.1", "User-Agent: bench", f"Content-Length: {length}"),
            *self.headers,
        )
        return "\r\n".join([*lines, "", self.body]).replace("%d", f"{number:010d}").encode()

    def is_right(self, head: bytes, body: bytes) -> bool:
        """Whether an answer is the right one."""
        return head.split(b" ", 2)[1] == b"%d" % self.status and self.field.encode() in body


@dataclass(frozen=True)
class Program:
    """A program: its name, what it is asked for, and how it is started in its folder on a port.

    package: of a registry, with its version; empty for ours. prepare: makes the files that it
    reads. first: a request that is sent once before.
    """

    name: str
    asked: str
    request: Request
    command: Callable[[Path, int], Sequence[str]]
    registry: str = ""
    package: str = ""
    prepare: Callable[[Path], None] = lambda _: None
    first: Request | None = None

    def install(self, folder: Path) -> None:
        """Install it into its folder, unless it is there. Raises `NotAvailable`."""
        folder.mkdir(parents=True, exist_ok=True)
        installed = folder / ".installed"
        if self.package and (not installed.exists() or installed.read_text() != self.package):
            for command in _INSTALL[self.registry](folder, self.package):
                _run(command, folder)
            installed.write_text(self.package)
        self.prepare(folder)


def _run(command: Sequence[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise NotAvailable(f"there is no {command[0]} on this machine")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NotAvailable(f"{command[0]} did not end within {_INSTALL_S} s") from error
    if done.returncode:
        raise NotAvailable(f"{command[0]}: {(done.stderr or done.stdout).strip()[-200:]}")


def _pip(folder: Path, package: str) -> Sequence[Sequence[str]]:
    venv = (sys.executable, "-m", "venv", "--clear", str(folder / "venv"))
    return venv, (str(folder / "venv/bin/pip"), "install", "--quiet", package)


def _npm(folder: Path, package: str) -> Sequence[Sequence[str]]:
    (folder / "package.json").write_text("{}")
    return [("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", package)]


_INSTALL: Final = {"PyPI": _pip, "npm": _npm}


def _python(name: str, *arguments: str) -> Callable[[Path, int], Sequence[str]]:
    return lambda folder, port: (str(folder / "venv/bin" / name), *arguments, str(port))


def _node(name: str, *arguments: str) -> Callable[[Path, int], Sequence[str]]:
    return lambda folder, port: (
        *("node", str(folder / "node_modules/.bin" / name)),
        *(each.replace("PORT", str(port)) for each in arguments),
    )


def _ours(store: str) -> Callable[[Path, int], Sequence[str]]:
    return lambda folder, port: (
        *(sys.executable, "-m", "sandbox_sim", "serve", "--port", str(port)),
        *("--store", store.replace("FOLDER", str(folder)), "--set", "settle_delay_ms=3600000"),
    )


def _empty(folder: Path) -> None:
    for each in folder.glob("state*"):
        each.unlink()


def _wiremock(folder: Path, port: int) -> Sequence[str]:
    jar = next(folder.glob("node_modules/wiremock/build/*.jar"))
    return "java", "-jar", str(jar), "--port", str(port), "--root-dir", str(folder)


def _wiremock_files(folder: Path) -> None:
    (folder / "mappings").mkdir(exist_ok=True)
    headers = {"Content-Type": "application/json"}
    mapping = {
        "request": {"method": "POST", "urlPath": "/make_payment"},
        "response": {"status": 202, "headers": headers, "jsonBody": _ANSWER},
    }
    (folder / "mappings/payment.json").write_text(json.dumps(mapping))


def _mockoon_files(folder: Path) -> None:
    answer = {
        "uuid": "answer",
        "body": json.dumps(_ANSWER),
        "statusCode": 202,
        "headers": [{"key": "Content-Type", "value": "application/json"}],
        "default": True,
    }
    route = {
        "uuid": "payment",
        "type": "http",
        "method": "post",
        "endpoint": "make_payment",
        "responses": [answer],
    }
    environment = {
        "uuid": "gateway",
        "name": "gateway",
        "port": 3000,
        "lastMigration": 33,
        "routes": [route],
        "rootChildren": [{"type": "route", "uuid": "payment"}],
    }
    (folder / "gateway.json").write_text(json.dumps(environment))


def _prism_files(folder: Path) -> None:
    command = (sys.executable, "-m", "sandbox_sim", "openapi")
    (folder / "openapi.json").write_bytes(subprocess.check_output(command))


def _json_server_files(folder: Path) -> None:
    (folder / "db.json").write_text('{"payments": []}')


_PAYMENT: Final = Request(
    "/make_payment", json.dumps(payment("peer-%d")), 202, '"response_code":"202"'
)
_MOCKED: Final = Request("/make_payment", _PAYMENT.body, 202, '"202"')
_FORM: Final = "Content-Type: application/x-www-form-urlencoded"

PROGRAMS: Final = (
    Program("sandbox_sim, in memory", "a payment", _PAYMENT, _ours("memory:")),
    Program(
        "sandbox_sim, SQLite", "a payment", _PAYMENT, _ours("sqlite:FOLDER/state"), prepare=_empty
    ),
    Program(
        "WireMock",
        "our payment, a configured answer",
        _MOCKED,
        _wiremock,
        "npm",
        "wiremock@3.13.2",
        _wiremock_files,
    ),
    Program(
        "Mockoon CLI",
        "our payment, a configured answer",
        _MOCKED,
        _node("mockoon-cli", "start", "-d", "gateway.json", "-p", "PORT", "-X"),
        "npm",
        "@mockoon/cli@9.9.0",
        _mockoon_files,
    ),
    Program(
        "Prism",
        "our payment, from our OpenAPI document",
        Request(
            *("/make_payment", _PAYMENT.body, 202, '"response_code":'),
            headers=(*_BASIC, "Prefer: code=202"),
        ),
        _node("prism", "mock", "-p", "PORT", "openapi.json"),
        "npm",
        "@stoplight/prism-cli@5.16.0",
        _prism_files,
    ),
    Program(
        "json-server",
        "our payment, saved in a file",
        Request("/payments", _PAYMENT.body, 201, '"transaction_id": "peer-'),
        _node("json-server", "--port", "PORT", "--quiet", "db.json"),
        "npm",
        "json-server@0.17.4",
        _json_server_files,
    ),
    Program(
        "emulate, Stripe",
        "a payment intent",
        Request(
            *("/v1/payment_intents", "amount=1050&currency=ghs&description=%d"),
            *(200, '"object":"payment_intent"'),
            # Each token gets 5,000 answers an hour.
            headers=("Authorization: Bearer sk_test_%d", _FORM),
        ),
        _node("emulate", "start", "--service", "stripe", "--port", "PORT"),
        "npm",
        "emulate@0.11.2",
    ),
    Program(
        "localstripe",
        "a customer",
        Request(
            *("/v1/customers", "description=%d", 200, '"object": "customer"'),
            headers=("Authorization: Bearer sk_test_12345", _FORM),
        ),
        _python("localstripe", "--from-scratch", "--port"),
        "PyPI",
        "localstripe==1.15.10",
    ),
    Program(
        "moto server",
        "a message to an SQS queue",
        Request(
            "/",
            json.dumps({"QueueUrl": "http://127.0.0.1/123456789012/p", "MessageBody": "%d"}),
            200,
            '"MessageId"',
            (*_SQS, "X-Amz-Target: AmazonSQS.SendMessage"),
        ),
        _python("moto_server", "-H", "127.0.0.1", "-p"),
        "PyPI",
        "moto[server]==5.2.5",
        first=Request(
            *("/", json.dumps({"QueueName": "p"}), 200, '"QueueUrl"'),
            headers=(*_SQS, "X-Amz-Target: AmazonSQS.CreateQueue"),
        ),
    ),
)
