"""One POST over a real socket: what is sent, and what is kept of the answer (D30)."""

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

from sandbox_sim import __version__
from sandbox_sim.adapters import callback_sender
from sandbox_sim.adapters.callback_sender import MAX_IDLE_CONNECTIONS, HttpCallbackSender
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.records.callbacks import KEPT_BODY_BYTES, FailureKind, ReceiverResponse
from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests.adapters.conftest import BODY, Listen, Receiver, http, post
from tests.turns import SOON_S, turns

pytestmark = [pytest.mark.decision("D30"), pytest.mark.spec("delivery.2", "delivery.5")]


class TestRequest:
    async def test_the_sender_posts_the_exact_bytes_with_the_signature(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        receiver = Receiver(http("200 OK"))
        url = await listen(receiver)

        await post(sender, url + "?order=a%2Bb%20c")

        assert receiver.body == BODY
        lines = receiver.head.split("\r\n")
        assert lines[0] == "POST /callback?order=a%2Bb%20c HTTP/1.1"
        assert "X-Service-Signature: 5ca1ab1e" in lines
        assert "Content-Type: application/json" in lines
        assert f"User-Agent: sandbox_sim/{__version__}" in lines

    async def test_cookies_of_a_receiver_are_not_sent_back(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        receiver = Receiver(http("200 OK", b"", "Set-Cookie: a=b", "Connection: close"))
        url = await listen(receiver)

        await post(sender, url)
        await post(sender, url)

        assert receiver.requests == 2
        assert "cookie" not in receiver.head.lower()


class TestAnswer:
    async def test_status_and_body_are_kept(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        for status in [200, 202, 204, 400, 401, 404, 500, 503]:
            body = b"" if status == 204 else "danke schön".encode()
            url = await listen(Receiver(http(f"{status} So", body)))

            answer = await post(sender, url)

            assert (answer.status_code, answer.body, answer.problem) == (
                status,
                body.decode(),
                None,
            )
            assert answer.duration_ms >= 0

    @pytest.mark.parametrize("header", ["X-By: Django", "Connection: close"])
    async def test_the_forbidden_body_of_a_204_is_not_read(
        self, sender: HttpCallbackSender, listen: Listen, header: str
    ) -> None:
        url = await listen(Receiver(http("204 No Content", b"ok", header)))

        for _ in range(2):
            answer = await post(sender, url)

            assert (answer.status_code, answer.body, answer.problem) == (204, "", None)

    @pytest.mark.parametrize(
        ("announced", "body"),
        [("Content-Length: 2", b"ok"), ("Transfer-Encoding: chunked", b"2\r\nok\r\n0\r\n\r\n")],
    )
    async def test_a_late_body_of_a_204_does_not_reach_the_next_callback(
        self, sender: HttpCallbackSender, listen: Listen, announced: str, body: bytes
    ) -> None:
        head = f"HTTP/1.1 204 No Content\r\n{announced}\r\n\r\n".encode()

        async def write_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")  # the next callback
            writer.write(body)
            await writer.drain()

        receiver = Receiver(head, write_late)
        url = await listen(receiver)
        for connections in (1, 2):
            answer = await post(sender, url)

            assert (answer.status_code, answer.body, answer.problem) == (204, "", None)
            assert len(receiver.writers) == connections

    async def test_a_204_that_announces_no_body_leaves_the_connection_open(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        async def answer_again(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(BODY)
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()

        receiver = Receiver(http("204 No Content"), answer_again)
        url = await listen(receiver)
        for _ in range(2):
            assert (await post(sender, url)).status_code == 204

        assert len(receiver.writers) == 1

    async def test_the_first_four_kib_of_the_body_are_kept(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        """A character that this cuts and bytes that are not UTF-8 are not a problem."""
        for size in [KEPT_BODY_BYTES - 1, KEPT_BODY_BYTES, KEPT_BODY_BYTES + 1]:
            url = await listen(Receiver(http("200 OK", b"x" * size)))
            assert len((await post(sender, url)).body) == min(size, 4096)

        url = await listen(Receiver(http("200 OK", b"\xff" + "é".encode() * 3000)))
        answer = await post(sender, url)
        assert answer.problem is None
        assert answer.body.startswith("\ufffdé")

    async def test_an_endless_body_is_not_read(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()

        receiver = Receiver(b"HTTP/1.1 200 OK\r\n\r\n", flood)
        url = await listen(receiver)

        answer = await asyncio.wait_for(post(sender, url), SOON_S)

        assert (answer.status_code, answer.body) == (200, "x" * 4096)
        await asyncio.wait_for(receiver.left.wait(), SOON_S)

    async def test_a_redirect_is_an_answer_and_not_followed(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        for status in [301, 302, 303, 307, 308]:
            elsewhere = Receiver(http("200 OK"))
            target = await listen(elsewhere)
            url = await listen(Receiver(http(f"{status} Elsewhere", b"", f"Location: {target}")))

            answer = await post(sender, url)

            assert (answer.status_code, answer.problem) == (status, None)
            assert elsewhere.requests == 0


async def test_the_sender_keeps_a_limited_number_of_idle_connections(
    sender: HttpCallbackSender, listen: Listen
) -> None:
    urls = [await listen(Receiver(http("200 OK"), hang)) for _ in range(MAX_IDLE_CONNECTIONS + 8)]

    for url in urls:
        assert (await post(sender, url)).acknowledges
    await asyncio.sleep(0)  # the last one is closed

    assert sender.connections == MAX_IDLE_CONNECTIONS


async def test_an_answer_to_no_request_is_not_read_as_that_to_the_next_one(
    sender: HttpCallbackSender, listen: Listen
) -> None:
    answered = asyncio.Event()

    async def answer_twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answered.wait()
        writer.write(receiver.answer)
        await hang(reader, writer)

    receiver = Receiver(http("200 OK"), answer_twice)
    url = await listen(receiver)
    assert (await post(sender, url)).acknowledges
    answered.set()
    await turns()

    receiver.answer = http("500 Broken")

    assert (await post(sender, url)).status_code == 500
    assert receiver.requests == 2


SOON = timedelta(milliseconds=30)
MINUTES = timedelta(minutes=5)


async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Send nothing until the other side closes the connection."""
    await reader.read()


class TestNoAnswer:
    async def test_a_receiver_that_hangs_before_or_in_its_body_times_out(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        """The attempt keeps the part of the response that arrived."""
        half = Receiver(b"HTTP/1.1 500 Broken\r\nContent-Length: 100\r\n\r\nhalf of it", hang)

        hung = await post(sender, await listen(Receiver(behave=hang)), SOON)
        began = await post(sender, await listen(half), SOON)

        assert (hung.status_code, hung.problem) == (None, "no answer within 0.03 s")
        assert hung.failure_kind is FailureKind.TIMEOUT
        assert (began.status_code, began.body) == (500, "half of it")

    async def test_the_status_counts_though_the_body_never_ends(
        self, sender: HttpCallbackSender, listen: Listen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The sender stops reading soon, which frees the connection of the receiver."""
        monkeypatch.setattr(callback_sender, "_BODY_TIMEOUT_S", 0.03)
        half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it"
        url = await listen(Receiver(half, hang))
        statuses: list[int] = []

        answer = await sender.send(url, {}, b"{}", MINUTES, on_status=lambda: statuses.append(1))

        assert (answer.status_code, answer.body, answer.acknowledges) == (200, "half of it", True)
        assert statuses == [1]

    async def test_a_lack_of_file_descriptors_is_reported_as_a_problem_of_this_machine(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
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

    async def test_a_refused_connection_is_reported(self, sender: HttpCallbackSender) -> None:
        url = closed_address()

        answer = await post(sender, f"{url}/callback")

        assert answer.status_code is None
        assert answer.problem is not None
        assert answer.problem.startswith(f"no connection to {urlsplit(url).netloc}: ")
        assert "refused" in answer.problem.lower()
        assert answer.failure_kind is FailureKind.CONNECTION

    async def test_a_missing_or_malformed_response_fails_the_attempt(
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
        closed = "the receiver closed the connection without an answer"
        for garbage in (b"", *rows):
            answer = await post(sender, await listen(Receiver(garbage)))

            assert answer.problem is not None
            assert answer.problem.startswith("the connection failed: " if garbage else closed)
            assert answer.failure_kind is FailureKind.EXCHANGE
            assert garbage or answer.status_code is None

    @pytest.mark.parametrize("interim", [100, 102, 103])
    async def test_endless_interim_answers_end_the_attempt(
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
        assert answer.problem == "the connection failed: 10 interim answers (1xx) and no final one"
        few = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 9
        answer = await post(sender, await listen(Receiver(few + http("200 OK"))))
        assert answer.acknowledges, "a few are passed over"

    async def test_an_unexpected_error_fails_the_attempt(
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

    async def test_an_unknown_host_is_reported(
        self, sender: HttpCallbackSender, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unknown(*_args: object, **_kwargs: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)

        answer = await post(sender, "http://nosuchhost.invalid/callback")

        assert answer.problem == "the host nosuchhost.invalid is not known"
        assert answer.failure_kind is FailureKind.HOST

    async def test_a_sender_that_is_not_open_fails_the_attempt(self) -> None:
        answer = await post(HttpCallbackSender(VirtualClock()), "http://127.0.0.1:9/")

        assert answer == ReceiverResponse(None, "", 0, "the gateway is not running")


class TestTls:
    async def test_a_certificate_of_an_unknown_authority_is_not_accepted(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

        answer = await post(sender, await listen(Receiver(http("200 OK")), context))

        assert answer.problem is not None
        assert answer.problem.startswith("the TLS certificate of 127.0.0.1 was not accepted: ")
        assert answer.failure_kind is FailureKind.CERTIFICATE

    async def test_https_to_a_plain_http_port_is_reported_as_such(
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
    async def test_a_failed_callback_to_localhost_in_a_container_gets_a_hint(
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
        monkeypatch.setattr(callback_sender, "CONTAINER_FILES", (str(marker),))

        assert not callback_sender.in_container()
        marker.touch()
        assert callback_sender.in_container()
