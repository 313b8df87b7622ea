"""Pages for browsers: the dashboard, the icon, unknown paths, the inbox and the login."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar
from yarl import URL

from sandbox_sim.settings.schema import certify_report
from tests.conftest import Sandbox, StartSandbox
from tests.web.pages.dashboard_pages import browse

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "User-Agent": "Browser"}


@pytest.fixture
async def browser() -> AsyncIterator[ClientSession]:
    """A session that asks for pages, as a browser does."""
    async with ClientSession(headers=BROWSER, cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_root_and_the_base_path_redirect_a_browser_to_the_dashboard(
    start_sandbox: StartSandbox, browser: ClientSession, method: str
) -> None:
    for base_path, paths in (("", ["/"]), ("/v1", ["/v1", "/v1/", "/v1/_sandbox"])):
        sandbox = await start_sandbox(base_path=base_path)
        for path in paths:
            root, _ = await browse(browser, sandbox.url + path, method)
            assert (root.status, root.headers["Location"]) == (303, f"{base_path}/_sandbox/")
        page, _ = await browse(browser, f"{sandbox.url}{base_path}/_sandbox/", method)
        assert (page.status, page.content_type) == (200, "text/html")


async def test_the_icon_is_served_without_a_line_in_the_log(
    sandbox: Sandbox, browser: ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    answer, text = await browse(
        browser, f"{sandbox.url}/favicon.ico", headers={"Accept": "image/*"}
    )

    assert (answer.status, answer.content_type) == (200, "image/svg+xml")
    assert text.startswith("<svg")
    assert [record for record in caplog.records if record.name.startswith("sandbox_sim")] == []


async def test_a_path_without_a_page_gets_an_error_page(
    sandbox: Sandbox, browser: ClientSession
) -> None:
    rows = [
        ("/nothing", 404, "no path /nothing"),
        ("/<script>alert(1)</script>", 404, "alert(1)"),
        ("/_sandbox/nothing", 404, "/_sandbox/nothing"),
        ("/_sandbox/transactions/55/none", 404, "none"),
        ("/make_payment", 405, "programs send it a POST"),
    ]
    for path, status, words in rows:
        answer, text = await browse(browser, sandbox.url + path)

        assert (answer.status, answer.content_type) == (status, "text/html")
        assert words in text
        assert "<script>alert" not in text
        assert "Open the dashboard" in text


async def test_a_program_and_a_post_get_json(sandbox: Sandbox, browser: ClientSession) -> None:
    for path in ["/", "/nothing", "/make_payment", "/favicon.ico"]:
        asked: list[tuple[str, dict[str, str]]] = [("GET", {"Accept": "*/*"}), ("POST", {})]
        for method, headers in asked[path == "/favicon.ico" :]:
            answer, text = await browse(browser, sandbox.url + path, method, headers=headers)

            assert (answer.status, answer.content_type) == (401, "application/json")
            assert '"response_code":"100"' in text


class TestInbox:
    async def test_a_browser_gets_the_deliveries_and_only_a_program_adds_one(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        await sandbox.collect(transaction_id="<b>T1</b>")
        await sandbox.advance(seconds=1)

        answer, text = await browse(browser, sandbox.inbox_url("orders"))

        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "&lt;b&gt;T1&lt;/b&gt;" in text
        assert "signature valid" in text
        assert len(await sandbox.inbox()) == 1

        await browse(browser, sandbox.inbox_url("orders"), headers={"Accept": "*/*"})
        assert len(await sandbox.inbox()) == 2

    async def test_deliveries_are_shown_in_pages(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        inbox = sandbox.inbox_url("orders")
        for number in range(21):
            async with sandbox.session.post(inbox, data=f"no. {number}"):
                pass

        _, newest = await browse(browser, inbox)
        after = newest.partition("?after=")[2].partition('"')[0]
        _, oldest = await browse(browser, f"{inbox}?after={after}")
        _, deleted = await browse(browser, f"{inbox}?after=gone")

        assert "no. 20<" in newest
        assert "no. 0<" not in newest
        assert "no. 0<" in oldest
        assert "Nothing older" in deleted
        assert '<a class="button" href="?">Show the newest</a>' in deleted

    async def test_the_button_empties_an_inbox_with_a_slash_in_its_name(
        self, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        inbox = URL(f"{sandbox.url}/_sandbox/inbox/a%2Fb", encoded=True)
        async with sandbox.session.post(inbox, data="{}"):
            pass

        async with browser.get(inbox) as answer:
            path = (await answer.text()).partition('data-empties="')[2].partition('"')[0]
        emptied = URL(f"{sandbox.url}/_sandbox/{path}", encoded=True)
        async with sandbox.session.delete(emptied) as answer:
            assert await answer.json() == {"deleted": 1}


class TestLogin:
    async def login(
        self, browser: ClientSession, sandbox: Sandbox, token: str = "s3cret", **form: str
    ) -> ClientResponse:
        url = f"{sandbox.url}/_sandbox/login"
        return (await browse(browser, url, "POST", data={"token": token, **form}))[0]

    @pytest.fixture
    async def guarded(self, start_sandbox: StartSandbox) -> Sandbox:
        return await start_sandbox(control_token="s3cret")

    async def test_the_token_is_entered_once_and_needed_again_after_a_logout(
        self, guarded: Sandbox, browser: ClientSession
    ) -> None:
        wanted = "/_sandbox/?q=0244"

        before, _ = await browse(browser, guarded.url + wanted)
        entered = await self.login(browser, guarded, next=wanted)
        cookie = entered.headers["Set-Cookie"]
        after, _ = await browse(browser, guarded.url + wanted)
        await browse(browser, f"{guarded.url}/_sandbox/logout", "POST")
        logged_out, _ = await browse(browser, guarded.url + wanted)

        assert (entered.status, entered.headers["Location"]) == (303, wanted)
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "s3cret" not in cookie
        assert [each.status for each in (before, after, logged_out)] == [303, 200, 303]

    async def test_the_cookie_is_secure_if_browsers_use_https(
        self, start_sandbox: StartSandbox, browser: ClientSession
    ) -> None:
        """The tests speak plain HTTP to the server, as a proxy in front of it does."""
        settings: tuple[dict[str, bool], ...] = ({}, {"tls_terminated": True}, {"tls": True})
        for each in settings:
            sandbox = await start_sandbox(control_token="s3cret", **each)

            cookie = (await self.login(browser, sandbox)).headers["Set-Cookie"]

            assert ("Secure" in cookie) is bool(each)

    async def test_a_wrong_token_is_refused_and_a_server_without_a_token_has_no_login(
        self, guarded: Sandbox, sandbox: Sandbox, browser: ClientSession
    ) -> None:
        """A browser that opens an inbox is redirected to the login."""
        inbox, _ = await browse(browser, guarded.inbox_url("orders"))
        assert inbox.status == 303
        assert inbox.headers["Location"].startswith("/_sandbox/login?next=")

        answer = await self.login(browser, guarded, "guess")
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="sandbox_sim"'
        assert "Set-Cookie" not in answer.headers

        open_, _ = await browse(browser, f"{sandbox.url}/_sandbox/login")
        assert (open_.status, open_.headers["Location"]) == (303, "/_sandbox/")

    async def test_the_login_never_redirects_to_another_site(
        self, guarded: Sandbox, browser: ClientSession
    ) -> None:
        elsewhere = ("https://evil.example/", "//evil.example", "/_sandbox/\r\nX: 1", "/\\evil")
        for wanted in elsewhere:
            answer = await self.login(browser, guarded, next=wanted)

            assert answer.headers["Location"] == "/_sandbox/"

    async def test_a_change_needs_the_origin_of_the_gateway_beside_the_cookie(
        self, guarded: Sandbox, browser: ClientSession
    ) -> None:
        """A browser sends the cookie to every port of a host, so `Origin` must be the gateway's."""
        await self.login(browser, guarded)
        freeze = f"{guarded.url}/_sandbox/clock/freeze"
        asked: tuple[dict[str, str], ...] = (
            {},
            {"Origin": guarded.url},
            {"Origin": "http://127.0.0.1:9"},
        )

        answers = [(await browse(browser, freeze, "POST", headers=each))[0] for each in asked]

        assert [each.status for each in answers] == [401, 200, 403]


async def test_the_last_run_of_certify_is_a_page(
    sandbox: Sandbox, browser: ClientSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    none, how = await browse(browser, f"{sandbox.url}/_sandbox/certify")
    certify_report().parent.mkdir(parents=True)
    certify_report().write_text("<h1>Certified</h1>")
    page, text = await browse(browser, f"{sandbox.url}/_sandbox/certify")

    assert none.status == 200
    assert "sandbox-sim certify init" in how
    assert (page.status, page.content_type, text) == (200, "text/html", "<h1>Certified</h1>")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


CHANGED = b"event: changed\ndata: {}\n\n"


async def test_a_change_is_announced_without_its_content(sandbox: Sandbox) -> None:
    """The feed ends when the server stops."""
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/changes") as feed:
        assert await feed.content.readuntil(b"\n\n") == b"retry: 1000\n\n"

        await sandbox.collect(reference="secret")
        assert await feed.content.readuntil(b"\n\n") == CHANGED

        await sandbox.stop()
        assert (await feed.content.read()).replace(CHANGED, b"") == b""
