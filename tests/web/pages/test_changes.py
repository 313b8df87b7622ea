"""`/_sandbox/changes`: open pages hear that something changed, and ask for themselves again."""

from aiohttp import ClientResponse

from tests.conftest import Sandbox

CHANGED = b"event: changed\ndata: {}\n\n"


async def heard(feed: ClientResponse) -> bytes:
    return await feed.content.readuntil(b"\n\n")


async def test_a_change_is_announced_without_its_content_until_the_server_ends(
    sandbox: Sandbox,
) -> None:
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/changes") as feed:
        assert await heard(feed) == b"retry: 1000\n\n"

        await sandbox.collect(reference="secret")
        assert await heard(feed) == CHANGED

        await sandbox.stop()
        assert (await feed.content.read()).replace(CHANGED, b"") == b""
