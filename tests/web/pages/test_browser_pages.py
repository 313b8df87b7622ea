"""Pages for browsers: the dashboard, the icon, unknown paths, the inbox and the login."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar

from sandbox_sim.settings.schema import certify_report
from tests.conftest import Sandbox, StartSandbox

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "User-Agent": "Browser"}


@pytest.fixture
async def browser() -> AsyncIterator[ClientSession]:
    """A session that asks for pages, as a browser does, and follows no redirect."""
    async with ClientSession(headers=BROWSER, cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


async def ask(
    browser: ClientSession, url: str, method: str = "GET", **options: object
) -> tuple[ClientResponse, str]:
    async with browser.request(method, url, allow_redirects=False, **options) as answer:  # type: ignore[arg-type]
        return answer, await answer.text()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_root_leads_a_browser_to_the_dashboard(
    sandbox: Sandbox, browser: ClientSession, method: str
) -> None:
    root, _ = await ask(browser, f"{sandbox.url}/", method)
    page, _ = await ask(browser, f"{sandbox.url}/_sandbox/", method)

    assert (root.status, root.headers["Location"]) == (303, "/_sandbox/")
    assert (page.status, page.content_type) == (200, "text/html")


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/_sandbox"])
async def test_the_base_path_leads_there_too(
    start_sandbox: StartSandbox, browser: ClientSession, path: str
) -> None:
    sandbox = await start_sandbox(base_path="/v1")

    answer, _ = await ask(browser, sandbox.url + path)

    assert (answer.status, answer.headers["Location"]) == (303, "/v1/_sandbox/")


async def test_the_icon_comes_without_a_line_in_the_log(
    sandbox: Sandbox, browser: ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    answer, text = await ask(browser, f"{sandbox.url}/favicon.ico", headers={"Accept": "image/*"})

    assert (answer.status, answer.content_type) == (200, "image/svg+xml")
    assert text.startswith("<svg")
    assert [record for record in caplog.records if record.name.startswith("sandbox_sim")] == []


async def test_a_path_without_a_page_says_so_on_one(
    sandbox: Sandbox, browser: ClientSession
) -> None:
    rows = [
        ("/nothing", 404, "no path /nothing"),
        ("/_sandbox/nothing", 404, "/_sandbox/nothing"),
        ("/_sandbox/transactions/55/none", 404, "none"),
        ("/make_payment", 405, "programs send it a POST"),
    ]
    for path, status, words in rows:
        answer, text = await ask(browser, sandbox.url + path)

        assert (answer.status, answer.content_type) == (status, "text/html")
        assert words in text
        assert "Open the dashboard" in text


async def test_a_page_shows_a_path_as_text(sandbox: Sandbox, browser: ClientSession) -> None:
    _, text = await ask(browser, f"{sandbox.url}/<script>alert(1)</script>")

    assert "<script>alert" not in text


async def test_a_program_still_gets_json(sandbox: Sandbox, browser: ClientSession) -> None:
    for path in ["/", "/nothing", "/make_payment"]:
        answer, text = await ask(browser, sandbox.url + path, headers={"Accept": "*/*"})

        assert (answer.status, answer.content_type) == (401, "application/json")
        assert '"response_code":"100"' in text


async def test_a_post_never_gets_a_page(sandbox: Sandbox, browser: ClientSession) -> None:
    for path in ["/", "/nothing", "/make_payment", "/favicon.ico"]:
        answer, _ = await ask(browser, sandbox.url + path, "POST", data=b"{}")

        assert (answer.status, answer.content_type) == (401, "application/json")


class TestInbox:
    async def test_a_browser_sees_the_deliveries_and_stores_none(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        await sandbox.collect(transaction_id="<b>T1</b>")
        await sandbox.advance(seconds=1)

        answer, text = await ask(browser, sandbox.inbox_url("orders"))

        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "&lt;b&gt;T1&lt;/b&gt;" in text
        assert "signature valid" in text
        assert len(await sandbox.inbox()) == 1

    async def test_a_program_still_delivers_by_get(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        await ask(browser, sandbox.inbox_url("orders"), headers={"Accept": "*/*"})

        assert len(await sandbox.inbox()) == 1

    async def test_it_asks_for_the_token_that_its_messages_need(
        self, start_sandbox: StartSandbox, browser: ClientSession
    ) -> None:
        sandbox = await start_sandbox(control_token="s3cret")

        answer, _ = await ask(browser, sandbox.inbox_url("orders"))

        assert answer.status == 303
        assert answer.headers["Location"].startswith("/_sandbox/login?next=")

    async def test_pages_of_deliveries_follow_one_another(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        for number in range(21):
            async with sandbox.session.post(sandbox.inbox_url("orders"), data=f"no. {number}"):
                pass

        _, newest = await ask(browser, sandbox.inbox_url("orders"))
        after = newest.partition("?after=")[2].partition('"')[0]
        _, oldest = await ask(browser, f"{sandbox.inbox_url('orders')}?after={after}")

        assert "no. 20<" in newest
        assert "no. 0<" not in newest
        assert "no. 0<" in oldest

    async def test_a_page_whose_deliveries_were_deleted_meanwhile_leads_to_the_newest(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        _, html = await ask(browser, f"{sandbox.inbox_url('orders')}?after=gone")

        assert "Nothing older" in html
        assert '<a class="button" href="?">Show the newest</a>' in html


class TestLogin:
    async def login(
        self, browser: ClientSession, sandbox: Sandbox, token: str = "s3cret", **form: str
    ) -> ClientResponse:
        url = f"{sandbox.url}/_sandbox/login"
        return (await ask(browser, url, "POST", data={"token": token, **form}))[0]

    async def test_the_token_is_entered_once(
        self, start_sandbox: StartSandbox, browser: ClientSession
    ) -> None:
        sandbox = await start_sandbox(control_token="s3cret")
        wanted = "/_sandbox/?q=0244"

        before, _ = await ask(browser, sandbox.url + wanted)
        entered = await self.login(browser, sandbox, next=wanted)
        cookie = entered.headers["Set-Cookie"]
        after, _ = await ask(browser, sandbox.url + wanted)

        assert before.status == 303
        assert (entered.status, entered.headers["Location"]) == (303, wanted)
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "s3cret" not in cookie
        assert after.status == 200

    @pytest.mark.parametrize(
        ("settings", "secure"),
        [({}, False), ({"tls_terminated": True}, True), ({"tls": True}, True)],
    )
    async def test_browsers_that_come_by_https_keep_the_cookie_to_it(
        self,
        start_sandbox: StartSandbox,
        browser: ClientSession,
        settings: dict[str, bool],
        *,
        secure: bool,
    ) -> None:
        """The tests speak plain HTTP to the server, as a proxy in front of it does."""
        sandbox = await start_sandbox(control_token="s3cret", **settings)

        cookie = (await self.login(browser, sandbox)).headers["Set-Cookie"]

        assert ("Secure" in cookie) is secure

    async def test_a_wrong_token_is_refused(
        self, start_sandbox: StartSandbox, browser: ClientSession
    ) -> None:
        sandbox = await start_sandbox(control_token="s3cret")

        answer = await self.login(browser, sandbox, "guess")

        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="sandbox_sim"'

        assert answer.status == 401
        assert "Set-Cookie" not in answer.headers

    @pytest.mark.parametrize(
        "wanted", ["https://evil.example/", "//evil.example", "/_sandbox/\r\nX: 1", "/\\evil"]
    )
    async def test_it_leads_to_no_other_site(
        self, start_sandbox: StartSandbox, browser: ClientSession, wanted: str
    ) -> None:
        sandbox = await start_sandbox(control_token="s3cret")

        answer = await self.login(browser, sandbox, next=wanted)

        assert answer.headers["Location"] == "/_sandbox/"

    async def test_the_cookie_alone_changes_nothing(
        self, start_sandbox: StartSandbox, browser: ClientSession
    ) -> None:
        """A browser sends the cookie to every port of a host, so `Origin` must be the gateway's."""
        sandbox = await start_sandbox(control_token="s3cret")
        await self.login(browser, sandbox)
        freeze = f"{sandbox.url}/_sandbox/clock/freeze"

        without, _ = await ask(browser, freeze, "POST")
        ours, _ = await ask(browser, freeze, "POST", headers={"Origin": sandbox.url})
        other = {"Origin": "http://127.0.0.1:9"}
        foreign, _ = await ask(browser, freeze, "POST", headers=other)

        assert (without.status, ours.status, foreign.status) == (401, 200, 403)

    async def test_logging_out_takes_the_cookie_away(
        self, start_sandbox: StartSandbox, browser: ClientSession
    ) -> None:
        sandbox = await start_sandbox(control_token="s3cret")
        await self.login(browser, sandbox)

        await ask(browser, f"{sandbox.url}/_sandbox/logout", "POST")

        assert (await ask(browser, f"{sandbox.url}/_sandbox/"))[0].status == 303

    async def test_without_a_token_there_is_nothing_to_enter(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        answer, _ = await ask(browser, f"{sandbox.url}/_sandbox/login")

        assert (answer.status, answer.headers["Location"]) == (303, "/_sandbox/")


async def test_the_last_run_of_certify_is_a_page(
    sandbox: Sandbox, browser: ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    none, how = await ask(browser, f"{sandbox.url}/_sandbox/certify")
    certify_report().parent.mkdir(parents=True)
    certify_report().write_text("<h1>Certified</h1>")
    page, text = await ask(browser, f"{sandbox.url}/_sandbox/certify")

    assert none.status == 200
    assert "sandbox-sim certify init" in how
    assert (page.status, page.content_type, text) == (200, "text/html", "<h1>Certified</h1>")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
