"""One POST over a real socket: what is sent, and what is kept of the answer (D30)."""

import asyncio

import pytest

from sandbox_sim import __version__
from sandbox_sim.adapters.callback_sender import KEPT_IDLE, HttpCallbackSender
from sandbox_sim.records.callbacks import KEPT_BODY_BYTES
from tests.adapters.conftest import BODY, Listen, Receiver, http, post
from tests.turns import SOON_S

pytestmark = [pytest.mark.decision("D30"), pytest.mark.spec("delivery.2", "delivery.5")]


class TestTheRequest:
    async def test_it_posts_the_exact_bytes_with_the_signature(
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


class TestTheAnswer:
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
    async def test_the_body_of_a_204_which_http_forbids_is_not_read(
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
    async def test_the_body_of_a_204_does_not_reach_the_next_callback_when_it_is_late(
        self, sender: HttpCallbackSender, listen: Listen, announced: str, body: bytes
    ) -> None:
        head = f"HTTP/1.1 204 No Content\r\n{announced}\r\n\r\n".encode()

        async def write_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(head)
            await reader.readuntil(b"\r\n\r\n")  # the next callback
            writer.write(body)
            await writer.drain()

        receiver = Receiver(behave=write_late)
        url = await listen(receiver)
        for connections in (1, 2):
            answer = await post(sender, url)

            assert (answer.status_code, answer.body, answer.problem) == (204, "", None)
            assert len(receiver.writers) == connections

    async def test_a_204_that_announces_no_body_leaves_the_connection_open(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        async def answer_two(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(http("204 No Content"))
            await reader.readuntil(BODY)
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()

        receiver = Receiver(behave=answer_two)
        url = await listen(receiver)
        for _ in range(2):
            assert (await post(sender, url)).status_code == 204

        assert len(receiver.writers) == 1

    async def test_the_first_four_kib_of_the_body_are_kept(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        for size in [KEPT_BODY_BYTES - 1, KEPT_BODY_BYTES, KEPT_BODY_BYTES + 1]:
            url = await listen(Receiver(http("200 OK", b"x" * size)))

            assert len((await post(sender, url)).body) == min(size, 4096)

    async def test_a_character_cut_by_the_cap_and_foreign_bytes_are_no_problem(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        url = await listen(Receiver(http("200 OK", b"\xff" + "é".encode() * 3000)))

        answer = await post(sender, url)

        assert answer.problem is None
        assert answer.body.startswith("\ufffdé")

    async def test_an_endless_body_is_not_read(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()

        receiver = Receiver(behave=flood)
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


class TestConnections:
    async def test_one_is_used_again(self, sender: HttpCallbackSender, listen: Listen) -> None:
        url = await listen(Receiver(http("200 OK")))

        await post(sender, url)

        assert sender.connections == 1

    async def test_of_many_receivers_only_so_many_idle_ones_are_kept(
        self, sender: HttpCallbackSender, listen: Listen
    ) -> None:
        urls = [await listen(Receiver(behave=keep_open)) for _ in range(KEPT_IDLE + 8)]

        for url in urls:
            assert (await post(sender, url)).acknowledges
        await asyncio.sleep(0)  # the last one is closed

        assert sender.connections == KEPT_IDLE


async def keep_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Acknowledge, and wait for the next request."""
    writer.write(http("200 OK"))
    await reader.read()
