"""The requests of a browser to the hosted card page. A choice is a button of its form."""

from aiohttp import ClientResponse

from tests.conftest import Sandbox

LANDING_PAGE = "http://127.0.0.1:9/thanks?order=1&paid=yes"


async def redirect(sandbox: Sandbox, **fields: object) -> str:
    """Start a card payment; returns the address of its page."""
    answer = await sandbox.card(**{"landing_page": LANDING_PAGE, **fields})
    return str(answer.body["redirect_url"])


async def look(sandbox: Sandbox, page: str) -> tuple[int, str]:
    """Open a page; returns HTTP status and HTML."""
    async with sandbox.session.get(page) as response:
        return response.status, await response.text()


async def choose(sandbox: Sandbox, page: str, choice: str, **form: str) -> ClientResponse:
    """Press a button of the page."""
    data = {"choice": choice, **form}
    async with sandbox.session.post(page, data=data, allow_redirects=False) as response:
        await response.read()
        return response


async def status(sandbox: Sandbox) -> str:
    """The status of transaction T1."""
    return str((await sandbox.status()).data["status"])
