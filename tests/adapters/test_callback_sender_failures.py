"""The sender describes each failure of a callback in words, and raises nothing (D30)."""

import asyncio
import resource
import socket
import ssl
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from sandbox_sim.adapters import callback_sender
from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.records.callbacks import FailureKind, ReceiverResponse
from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests.adapters.conftest import Listen, Receiver, http, post

pytestmark = [pytest.mark.decision("D30"), pytest.mark.spec("delivery.2", "delivery.5")]

SOON = timedelta(milliseconds=30)
MINUTES = timedelta(minutes=5)


async def for_ever(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Send nothing until the other side closes the connection."""
    await reader.read()


class TestNoAnswer:
    async def test_a_receiver_that_hangs(self, sender: HttpCallbackSender, listen: Listen) -> None:
        url = await listen(Receiver(behave=for_ever))

        answer = await post(sender, url, SOON)

        assert answer.status_code is None
        assert answer.problem == "no answer within 0.03 s"
        assert answer.failure_kind is FailureKind.TIMEOUT

    async def test_a_body_that_does_not_end_leaves_the_status_and_what_came_of_it(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        """The attempt keeps the part of the response that came."""

        async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 500 Broken\r\nContent-Length: 100\r\n\r\nhalf of it")
            await for_ever(reader, writer)

        answer = await post(sender, await listen(Receiver(behave=half)), SOON)

        assert (answer.status_code, answer.body) == (500, "half of it")

    async def test_the_status_counts_though_the_body_never_ends(
        self, sender: HttpCallbackSender, listen: Listen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The sender stops reading soon, which frees the connection of the receiver."""

        async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it")
            await for_ever(reader, writer)

        monkeypatch.setattr(callback_sender, "_BODY_TIMEOUT_S", 0.03)
        url = await listen(Receiver(behave=half))
        statuses: list[int] = []

        answer = await sender.send(url, {}, b"{}", MINUTES, on_status=lambda: statuses.append(1))

        assert (answer.status_code, answer.body, answer.acknowledges) == (200, "half of it", True)
        assert statuses == [1]

    async def test_no_descriptor_is_left(self, sender: HttpCallbackSender, listen: Listen) -> None:
        """The failure is one of this machine, not of the receiver."""
        url = await listen(Receiver(http("200 OK")))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
        try:
            answer = await post(sender, url)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

        assert answer.failure_kind is FailureKind.RESOURCES
        assert answer.problem == "this machine cannot open a connection: Too many open files"
        assert (await post(sender, url)).acknowledges

    async def test_nobody_listens(self, sender: HttpCallbackSender) -> None:
        url = closed_address()

        answer = await post(sender, f"{url}/callback")

        assert answer.status_code is None
        assert answer.problem is not None
        assert answer.problem.startswith(f"no connection to {urlsplit(url).netloc}: ")
        assert "refused" in answer.problem.lower()
        assert answer.failure_kind is FailureKind.CONNECTION

    async def test_the_connection_is_closed_without_an_answer(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        answer = await post(sender, await listen(Receiver(b"")))

        assert answer.status_code is None
        assert answer.problem == "the receiver closed the connection without an answer"
        assert answer.failure_kind is FailureKind.EXCHANGE

    async def test_an_answer_that_is_no_http(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        rows = [
            b"hello\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"HTTP/1.1 abc OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            http("200 OK", b"not gzip at all", "Content-Encoding: gzip"),
            http("200 OK", b"x", "Content-Length: 2"),
            bytes(range(256)),
        ]
        for garbage in rows:
            answer = await post(sender, await listen(Receiver(garbage)))

            assert answer.problem is not None
            assert answer.problem.startswith("the connection failed: ")
            assert answer.failure_kind is FailureKind.EXCHANGE

    @pytest.mark.parametrize("interim", [100, 102, 103])
    async def test_interim_answers_without_end_end_the_attempt(
        self, sender: HttpCallbackSender, listen: Listen, interim: int
    ) -> None:
        async def endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                while True:
                    writer.write(b"HTTP/1.1 %d More\r\n\r\n" % interim * 1_000)
                    await writer.drain()

        answer = await post(sender, await listen(Receiver(behave=endless)), MINUTES)

        assert answer.status_code is None
        assert answer.failure_kind is FailureKind.EXCHANGE
        problem = "the connection failed: 10 interim answers (1xx) and no final one"
        assert answer.problem == problem

    async def test_a_few_interim_answers_are_passed_over(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        few = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 9

        answer = await post(sender, await listen(Receiver(few + http("200 OK"))))

        assert answer.acknowledges

    async def test_what_no_library_of_ours_raises(
        self, sender: HttpCallbackSender, listen: Listen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A test suite that forbids connections raises its own kind of error."""
        url = await listen(Receiver())

        def forbidden(*_: object) -> None:
            raise RuntimeError("this test may not connect")

        monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", forbidden)

        answer = await post(sender, url)

        assert answer.problem == "the connection failed: this test may not connect"
        assert answer.failure_kind is FailureKind.EXCHANGE

    async def test_a_host_that_nobody_knows(
        self, sender: HttpCallbackSender, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unknown(*_args: object, **_kwargs: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)

        answer = await post(sender, "http://nosuchhost.invalid/callback")

        assert answer.problem == "the host nosuchhost.invalid is not known"
        assert answer.failure_kind is FailureKind.HOST

    async def test_a_sender_that_was_not_opened_says_so(self) -> None:
        answer = await post(HttpCallbackSender(VirtualClock()), "http://127.0.0.1:9/")

        assert answer == ReceiverResponse(None, "", 0, "the gateway is not running")


class TestTls:
    async def test_a_certificate_that_nobody_vouches_for(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

        answer = await post(sender, await listen(Receiver(http("200 OK")), context))

        assert answer.problem is not None
        assert answer.problem.startswith("the TLS certificate of 127.0.0.1 was not accepted: ")
        assert answer.failure_kind is FailureKind.CERTIFICATE

    async def test_https_to_a_port_that_speaks_plain_http_blames_no_certificate(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(http("400 Bad Request"))
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            answer = await post(sender, f"https://127.0.0.1:{port}/callback")

        assert answer.status_code is None
        assert answer.problem is not None
        assert "TLS" in answer.problem
        assert answer.problem.endswith("it speaks plain HTTP there: use http:// in the address")
        assert "certificate" not in answer.problem
        assert answer.failure_kind is FailureKind.TLS


@pytest.mark.decision("D36")
class TestContainers:
    @pytest.mark.parametrize(
        ("host", "containerized", "named"),
        [("localhost", True, True), ("localhost", False, False), ("127.0.0.1", True, False)],
    )
    async def test_localhost_is_the_container_itself(
        self, host: str, containerized: bool, named: bool
    ) -> None:
        async with HttpCallbackSender(VirtualClock(), containerized=containerized) as sender:
            answer = await post(sender, f"http://{host}:9/callback")

        assert answer.problem is not None
        assert answer.problem.startswith(f"no connection to {host}:9: ")
        assert ("use host.docker.internal" in answer.problem) is named

    def test_a_container_is_recognised_by_the_files_of_docker_and_podman(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        marker = tmp_path / ".dockerenv"
        monkeypatch.setattr(callback_sender, "MARKERS", (str(marker),))

        assert not callback_sender.in_container()
        marker.touch()
        assert callback_sender.in_container()
