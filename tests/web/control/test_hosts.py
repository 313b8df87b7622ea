"""The checks of Host and Origin under /_sandbox refuse other web pages; some routes are open."""

import re
from itertools import product

import pytest

from sandbox_sim.web.api.authentication import AllowedHosts
from sandbox_sim.web.app import CONTROL
from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import assert_error
from tests.web.hosted_page import look, redirect, status
from tests.web.wire import Answer, exchange, request_bytes

# Routes that need no token and accept any Host and Origin. Routes in no list here are guarded.
OPEN = {
    ("GET", "/_sandbox/livez"),
    ("GET", "/_sandbox/readyz"),
    ("GET", "/_sandbox/version"),
    ("GET", "/_sandbox/pay/{id}"),
    ("HEAD", "/_sandbox/pay/{id}"),
    ("GET", "/_sandbox/login"),
    ("GET", "/_sandbox/enter"),
    ("GET", "/_sandbox/handset/{number}/enter"),
    ("GET", "/_sandbox/rules"),
}
# Routes that need no token and accept any Host, but refuse requests from other web pages.
FORMS = {
    ("POST", "/_sandbox/pay/{id}"),
    ("POST", "/_sandbox/login"),
    ("POST", "/_sandbox/logout"),
    ("*", "/_sandbox/inbox/{name}"),
}
# Pages that redirect a browser without a session to the login.
PAGES = {
    ("GET", "/_sandbox/"),
    ("HEAD", "/_sandbox/"),
    ("GET", "/_sandbox/certify"),
    ("GET", "/_sandbox/docs"),
}

EVIL = b"evil.example"
FROM_EVIL = b"Origin: http://evil.example"
FROM_NULL = b"Origin: null"
CROSS_SITE = b"Sec-Fetch-Site: cross-site"
LEDGER, LIVEZ = ("GET", "/_sandbox/ledger"), ("GET", "/_sandbox/livez")
TOPUP = ("POST", "/_sandbox/ledger/topup")
UNITS = b'{"service_id": 55, "units": 1}'


async def ask(
    sandbox: Sandbox,
    asked: tuple[str, str],
    *headers: bytes,
    host: bytes | None = b"127.0.0.1",
    version: bytes = b"HTTP/1.1",
) -> Answer:
    method, path = asked
    body = UNITS if method == "POST" else b""
    request = request_bytes(
        path, body, *headers, method=method, credentials=False, host=host, version=version
    )
    return await exchange(sandbox, request, head=method == "HEAD")


class TestEveryRoute:
    """The tests check every route of the server: it is guarded, or listed above as open."""

    @pytest.mark.parametrize("base_path", ["", "/gateway/v1"])
    async def test_each_route_is_guarded_or_listed_as_open(
        self, start_sandbox: StartSandbox, base_path: str
    ) -> None:
        sandbox = await start_sandbox(control_token="s3cret", base_path=base_path)
        bearer = b"Authorization: Bearer s3cret"
        across = (b"Origin: http://evil.example", CROSS_SITE)

        listed = {(method, base_path + path) for method, path in OPEN | FORMS | PAGES}
        routes = {
            (each.method, each.resource.canonical)
            for each in sandbox.gateway.app[CONTROL]().router.routes()
            if each.resource is not None
        }
        assert routes >= listed
        for route in routes:
            method, path = route[0], route[1].removeprefix(base_path)
            plain = (method, path)
            # The record in the path need not exist.
            asked = ("POST" if method == "*" else method, re.sub(r"\{[^}]*\}", "1", route[1]))
            if plain in OPEN or (method == "GET" and path.startswith("/_sandbox/static/")):
                assert (await ask(sandbox, asked, *across, host=EVIL)).status in {200, 404}, route
            elif plain in FORMS:
                assert (await ask(sandbox, asked, *across)).status == 403, route
                assert (await ask(sandbox, asked, host=EVIL)).status != 403, route
            else:
                refused = 303 if plain in PAGES else 401
                assert (await ask(sandbox, asked)).status == refused, route
                assert (await ask(sandbox, asked, bearer, host=EVIL)).status == 403, route
                assert (await ask(sandbox, asked, bearer, *across)).status == 403, route

    async def test_answers_have_no_cors_headers(self, sandbox: Sandbox) -> None:
        preflight = (FROM_EVIL, b"Access-Control-Request-Method: POST")
        host = sandbox.url.removeprefix("http://").encode()
        own = b"Origin: http://" + host
        answers = [await ask(sandbox, ("OPTIONS", TOPUP[1]), *preflight)]
        answers += [await ask(sandbox, each, own, host=host) for each in (LEDGER, TOPUP, LIVEZ)]

        assert [each.status for each in answers] == [405, 200, 200, 200]
        for answer in answers:
            assert not [name for name in answer.headers if name.startswith("access-control-")]


class TestHost:
    async def test_loopback_hosts_are_accepted_on_any_port(self, sandbox: Sandbox) -> None:
        for host in [
            *(b"localhost", b"localhost:8233", b"LOCALHOST", b"localhost."),
            *(b"127.0.0.1", b"127.0.0.1:80", b"127.8.8.8:1", b"[::1]", b"[::1]:8233"),
            b"[::ffff:127.0.0.1]:8233",
        ]:
            assert (await ask(sandbox, LEDGER, host=host)).status == 200, host

    async def test_a_foreign_host_is_refused_naming_the_setting(self, sandbox: Sandbox) -> None:
        names = (
            *(EVIL, b"evil.example:8233", b"localhost.evil.example", b"127.0.0.1.evil.example"),
            *(b"xlocalhost", b"gateway", b"10.1.2.3", b"0.0.0.0", b"[fd00::1]:8233", b"2130706433"),
            *(b"127.1", b"example"),
        )
        for asked, host in product((LEDGER, TOPUP), names):
            answer = await ask(sandbox, asked, host=host)

            name = host.decode().partition(":8233")[0].strip("[]")
            assert_error(answer, 403, f"add {name} to the setting allowed_hosts")
            assert answer.body["error"]["code"] == "host_not_allowed"

    async def test_an_invalid_or_missing_host_is_refused(self, sandbox: Sandbox) -> None:
        """For HTTP/1.1 without a Host, or with two, aiohttp's parser already answers HTTP 400."""
        no_hosts = (b"a b", b"localhost, evil", b"user@localhost", b"localhost/", b"\xff", b"*")
        for host in (b"", *no_hosts):
            assert_error(await ask(sandbox, LEDGER, host=host), 403, "Host")
        assert_error(await ask(sandbox, LEDGER, host=None, version=b"HTTP/1.0"), 403, "Host")
        assert (await ask(sandbox, LEDGER, host=None)).status == 400
        assert (await ask(sandbox, LEDGER, b"Host: evil.example")).status == 400

    async def test_a_refused_request_changes_nothing_with_any_token(
        self, sandbox: Sandbox, start_sandbox: StartSandbox
    ) -> None:
        """The answer does not show if the token was right, because the Host is checked first."""
        before = await sandbox.sms_balance()
        assert (await ask(sandbox, TOPUP, host=EVIL)).status == 403
        assert (await ask(sandbox, TOPUP, FROM_EVIL)).status == 403
        assert await sandbox.sms_balance() == before

        guarded = await start_sandbox(control_token="s3cret")
        for token in (b"s3cret", b"wrong"):
            authorization = b"Authorization: Bearer " + token
            assert_error(await ask(guarded, LEDGER, authorization, host=EVIL), 403, "allowed_hosts")

    async def test_settings_add_hosts(self, start_sandbox: StartSandbox) -> None:
        rows: list[tuple[dict[str, object], bytes, int]] = [
            ({"allowed_hosts": ["gateway.example"]}, b"gateway.example:8233", 200),
            ({"allowed_hosts": ["gateway.example"]}, b"www.gateway.example", 403),
            ({"allowed_hosts": ["*"]}, EVIL, 200),
            ({"public_url": "https://gateway.example/v1"}, b"gateway.example", 200),
            ({"public_url": "https://gateway.example"}, EVIL, 403),
            ({"host": "gateway.test"}, b"gateway.test:8233", 200),
            ({"host": "0.0.0.0"}, b"0.0.0.0:8233", 200),
            ({"host": "0.0.0.0"}, b"192.168.1.7", 403),
            ({"host": "::"}, b"[::]:8233", 200),
            ({"host": ""}, b"", 403),
        ]
        for settings, host, expected in rows:
            sandbox = await start_sandbox(control_token="s3cret", **settings)

            answer = await ask(sandbox, LEDGER, b"Authorization: Bearer s3cret", host=host)
            assert answer.status == expected, settings

    def test_the_local_address_of_the_connection_is_an_allowed_host(self) -> None:
        """Without a connection, because these tests can only connect to a loopback address."""
        hosts = AllowedHosts("0.0.0.0", ())

        for address in ("192.168.1.7", "::ffff:192.168.1.7"):
            for host, is_allowed in (("192.168.1.7:8233", True), ("192.168.1.8:8233", False)):
                assert (hosts.problem_of_host({"Host": host}, address) is None) is is_allowed


class TestOrigin:
    async def test_an_origin_that_equals_the_host_is_accepted(self, sandbox: Sandbox) -> None:
        rows = [
            (b"localhost:8233", b"http://localhost:8233"),
            (b"LocalHost:8233", b"http://localhost:8233"),
            (b"[::1]:8233", b"http://[::1]:8233"),
            (b"localhost", b"https://localhost"),
            (b"localhost:80", b"http://localhost"),
        ]
        for host, origin in rows:
            assert (await ask(sandbox, TOPUP, b"Origin: " + origin, host=host)).status == 200

    async def test_a_foreign_origin_is_refused_naming_the_setting(self, sandbox: Sandbox) -> None:
        """A page on another port of this machine is refused too: it belongs to another program."""
        elsewhere = (
            "http://evil.example",
            "https://evil.example:8443",
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://localhost.evil.example",
        )
        for asked, origin in product((LEDGER, TOPUP), elsewhere):
            header = f"Origin: {origin}".encode()
            answer = await ask(sandbox, asked, header, host=b"localhost:8233")

            shown = origin.partition("://")[2]
            assert_error(answer, 403, f"add {shown} to the setting allowed_hosts")
            assert answer.body["error"]["code"] == "origin_not_allowed"

    async def test_settings_add_origins_and_an_origin_without_a_site_is_refused(
        self, start_sandbox: StartSandbox
    ) -> None:
        """Behind a proxy, the Host differs from the host in the browser's address."""
        rows: list[tuple[dict[str, object], bytes, int]] = [
            ({"allowed_hosts": ["shop.example"]}, b"https://shop.example", 200),
            ({"allowed_hosts": ["localhost:3000"]}, b"http://localhost:3000", 200),
            ({"allowed_hosts": ["localhost:3000"]}, b"http://localhost:3001", 403),
            ({"public_url": "https://gateway.example"}, b"https://gateway.example", 200),
            ({"public_url": "https://gateway.example"}, b"https://shop.example", 403),
        ]
        for settings, origin, expected in rows:
            sandbox = await start_sandbox(**settings)
            answer = await ask(sandbox, TOPUP, b"Origin: " + origin, CROSS_SITE)
            assert answer.status == expected, origin

        sandbox = await start_sandbox(allowed_hosts=["*"])
        no_site = (b"file://", b"chrome-extension://abcdef", b"http://", b"x", b"\xff")
        for origin in (b"null", b"", *no_site):
            assert_error(await ask(sandbox, TOPUP, b"Origin: " + origin), 403, "Origin")

    async def test_cross_site_requests_without_origin_only_read(self, sandbox: Sandbox) -> None:
        """A link on another site may open a page here, but may not change anything."""
        rows = [
            (TOPUP, b"cross-site", 403),
            (TOPUP, b"Cross-Site", 403),
            (("DELETE", "/_sandbox/inbox/orders"), b"cross-site", 403),
            (TOPUP, b"same-origin", 200),
            (TOPUP, b"none", 200),
            (LEDGER, b"cross-site", 200),
        ]
        for asked, site, expected in rows:
            assert (await ask(sandbox, asked, b"Sec-Fetch-Site: " + site)).status == expected

    async def test_the_content_type_does_not_affect_the_check(self, sandbox: Sandbox) -> None:
        """`curl -d` sends the type of a form too; Origin shows if a form is from another page."""
        for content_type in (b"text/plain", b"application/x-www-form-urlencoded"):
            header = b"Content-Type: " + content_type

            assert (await ask(sandbox, TOPUP, header)).status == 200
            assert (await ask(sandbox, TOPUP, header, FROM_EVIL)).status == 403


async def test_an_inbox_accepts_any_host_and_refuses_pages_of_other_sites(sandbox: Sandbox) -> None:
    """A callback_url has the name by which the sender reaches this server.

    An image in a page of another site sends a GET, which an inbox would store.
    """
    names = (b"gateway", b"sandbox_sim:8233", b"host.docker.internal")
    for host in names:
        answer = await ask(sandbox, ("POST", "/_sandbox/inbox/orders"), host=host)
        assert answer.status == 200

    methods = ("POST", "GET", "PUT", "HEAD", "OPTIONS")
    for headers, method in product([(FROM_EVIL, CROSS_SITE), (FROM_NULL,), (CROSS_SITE,)], methods):
        asked = (method, "/_sandbox/inbox/orders")
        assert (await ask(sandbox, asked, *headers, host=b"gateway")).status == 403, method
    assert len(await sandbox.inbox()) == len(names)


@pytest.mark.decision("D20")
class TestPaymentPage:
    """A link of the shop opens the page; only the page's own form decides the payment."""

    FORM = b"Content-Type: application/x-www-form-urlencoded"

    async def choose(self, sandbox: Sandbox, page: str, *headers: bytes, host: bytes) -> Answer:
        path = page.removeprefix(sandbox.url)
        request = request_bytes(path, b"choice=fail", self.FORM, *headers, host=host)
        return await exchange(sandbox, request)

    async def test_a_link_of_the_shop_opens_the_page(self, sandbox: Sandbox) -> None:
        """With the policy no-referrer, browsers would send the form with `Origin: null`."""
        page = await redirect(sandbox)
        asked = ("GET", page.removeprefix(sandbox.url))
        navigation = (CROSS_SITE, b"Sec-Fetch-Mode: navigate", b"Referer: https://shop.example/")

        for host in (b"127.0.0.1", b"pay.shop.example"):
            answer = await ask(sandbox, asked, *navigation, host=host)

            assert answer.status == 200
            assert answer.headers["referrer-policy"] == "same-origin"
        await sandbox.advance(seconds=10)
        assert await status(sandbox) == "002"

    @pytest.mark.parametrize(
        ("host", "origin", "settings"),
        [
            *((host, b"http://" + host, {}) for host in (b"127.0.0.1:8233", b"pay.example:8233")),
            (b"127.0.0.1:8233", b"https://pay.example", {"public_url": "https://pay.example"}),
        ],
        ids=["loopback", "another name", "behind a proxy"],
    )
    async def test_the_form_of_the_page_decides_the_payment(
        self, start_sandbox: StartSandbox, host: bytes, origin: bytes, settings: dict[str, str]
    ) -> None:
        """Any Host may open it: DNS rebinding does not help, because the id cannot be guessed."""
        sandbox = await start_sandbox(**settings)
        page = (await redirect(sandbox)).replace("https://pay.example", sandbox.url)
        await look(sandbox, page)

        headers = (b"Origin: " + origin, b"Sec-Fetch-Site: same-origin")
        answer = await self.choose(sandbox, page, *headers, host=host)

        assert (answer.status, await status(sandbox)) == (200, "001")

    async def test_a_form_of_another_page_decides_nothing(self, sandbox: Sandbox) -> None:
        page = await redirect(sandbox)
        await look(sandbox, page)

        for headers in ((b"Origin: https://shop.example", CROSS_SITE), (FROM_NULL,), (CROSS_SITE,)):
            answer = await self.choose(sandbox, page, *headers, host=b"127.0.0.1")

            assert_error(answer, 403)
            assert await status(sandbox) == "002"
