"""The pages in Chromium: a purchase with shop and phone, and what people do on the dashboard."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Locator, Page, Route, ViewportSize, expect

from sandbox_sim.ports.clock import ClockState
from tests.conftest import basic
from tests.demo.accessibility import LOOKS, barriers, without_repeats
from tests.demo.browser import DESK, IN_A_BROWSER, PHONE, WatchedPage
from tests.demo.stage import Stage, open_stage
from tests.kit.http_servers import listening
from tests.production.settings import BUILT_IN, LIVE
from tests.web.control_api import get, post
from tests.web.pages.dashboard_pages import HOSTILE, SILENT, VIEWS

pytestmark = IN_A_BROWSER
# Waits until the page has drawn the answer.
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# As if the person had gone to another tab, or had come back.
SET_HIDDEN = """hidden => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
NARROW = ViewportSize(width=390, height=844)
ALL_VIEWS = (*VIEWS, "settings")
OTHER_PAGES = ("nothing found", "timeline", "handset", "inbox", "rules", "payment page")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(browser: Browser) -> AsyncIterator[Stage]:
    async with open_stage(browser) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def watched(stage: Stage) -> AsyncIterator[WatchedPage]:
    """A page in its own context; the test fails if an error occurs on it."""
    async with stage.page() as watched:
        yield watched


@pytest.fixture
def page(watched: WatchedPage) -> Page:
    return watched.page


@asynccontextmanager
async def receiver(*statuses: int) -> AsyncIterator[str]:
    """A receiver of callbacks that answers these statuses, and 200 after them."""
    left = [*statuses]

    async def take(_request: web.Request) -> web.Response:
        status = left.pop(0) if left else 200
        return web.Response(
            status=status, text="KeyError: 'transaction_id'" if status > 299 else ""
        )

    async with listening(web.post("/callback", take)) as url:
        yield f"{url}/callback"


class LateAnswer:
    """A handler of `Page.route` that delays the first answer of the server until `comes`."""

    def __init__(self) -> None:
        self.is_held, self._released = asyncio.Event(), asyncio.Event()

    async def __call__(self, route: Route) -> None:
        answer = await route.fetch()
        if not self.is_held.is_set():
            self.is_held.set()
            await self._released.wait()
        await route.fulfill(response=answer)

    async def comes(self, page: Page) -> None:
        async with page.expect_event("requestfinished"):
            self._released.set()
        await page.evaluate(TWO_FRAMES)


def dashboard(stage: Stage, query: str = "") -> str:
    return f"{stage.url}/_sandbox/{query}"


async def test_a_purchase_by_handset_and_by_card(stage: Stage, page: Page) -> None:
    """On the screen of a demonstration: shop, phone and timeline side by side."""
    phone, timeline = page.frame_locator("#phone"), page.frame_locator("#timeline")
    shop = page.frame_locator("#shop")
    for how in ("Mobile money", "Card"):
        await page.goto(f"{stage.shop_url}/screen")
        await shop.get_by_role("link", name="Buy Cocoa bar").click()
        await shop.get_by_label(how).check()
        await shop.get_by_role("button", name="Pay GHS").click()
        if how == "Card":
            await shop.get_by_role("button", name="Visa •••• 1111").click()
            await shop.get_by_role("button", name="Pay GHS").click()
            await expect(shop.get_by_text("✓ Processing")).to_be_visible()
            continue

        await expect(timeline.get_by_text("Waiting for the payer")).to_be_visible()
        await phone.get_by_label("PIN").fill("1234")
        await phone.get_by_role("button", name="Approve").click()

        await expect(shop.get_by_text("✓ Processing")).to_be_visible()
        await expect(phone.locator(".bubble")).to_contain_text("is paid, GHS")
        await expect(phone.locator("#prompt")).to_have_count(0)
        await expect(timeline.get_by_text("Approved on the handset")).to_be_visible()
        await expect(timeline.get_by_text("Acknowledged with HTTP 200")).to_be_visible()


class RefuseConnection:
    """Refuses connections like a stopped server, after an answer with the time to reconnect."""

    answered = False

    async def __call__(self, route: Route) -> None:
        if self.answered:
            await route.abort("connectionrefused")
        else:
            self.answered = True
            await route.fulfill(content_type="text/event-stream", body="retry: 10\n\n")


async def answer_502(route: Route) -> None:
    """As a proxy does while the server behind it starts again."""
    await route.fulfill(status=502)


class TestDashboard:
    @pytest.mark.parametrize(
        "refuse", [RefuseConnection(), answer_502], ids=["stopped", "behind a proxy"]
    )
    async def test_the_page_says_that_the_server_cannot_be_reached(
        self,
        stage: Stage,
        page: Page,
        watched: WatchedPage,
        refuse: Callable[[Route], Awaitable[None]],
    ) -> None:
        await page.clock.install()
        await page.route("**/_sandbox/changes", refuse)
        await page.goto(dashboard(stage, ""))
        notice = page.get_by_text("The connection to the server is lost.")
        await expect(notice).to_be_visible()

        await page.unroute("**/_sandbox/changes")
        await page.clock.fast_forward("00:10")  # the page's pause; the browser's own is real

        await expect(notice).to_be_hidden(timeout=30_000)
        watched.problems.clear()  # the connection that was refused

    async def test_hidden_pages_leave_the_connections_of_the_browser_to_others(
        self, stage: Stage, page: Page
    ) -> None:
        """A browser has six connections to one server, and a feed takes one of them."""
        for _ in range(6):
            other = await page.context.new_page()
            await other.goto(dashboard(stage, ""))
            await other.evaluate(SET_HIDDEN, arg=True)

        await page.goto(dashboard(stage, ""))

        async with other.expect_request("**/_sandbox/changes"):
            await other.evaluate(SET_HIDDEN, arg=False)

    async def test_a_late_page_does_not_replace_a_newer_one(self, stage: Stage, page: Page) -> None:
        first = LateAnswer()
        await page.route("**/_sandbox/changes", lambda route: route.fulfill(status=204))
        await page.goto(dashboard(stage, "?q=service:62"))
        await page.route("**/_sandbox/?q=*", first)
        await page.get_by_role("button", name="+1 min").click()
        await first.is_held.wait()
        await stage.sandbox.airtime(service_id=62, transaction_id="NEW")
        await page.locator("#clock summary").click()
        await page.get_by_role("button", name="+15 min").click()
        row = page.locator("#rows").get_by_text("NEW")
        await expect(row).to_be_visible()

        await first.comes(page)
        await expect(row).to_be_visible()

    async def test_a_late_search_does_not_replace_a_newer_one(
        self, stage: Stage, page: Page
    ) -> None:
        for number in (1, 2):
            await stage.sandbox.airtime(service_id=172, transaction_id=f"S{number}")
        first = LateAnswer()
        await page.goto(dashboard(stage, "?q=service:172"))
        await page.route("**/_sandbox/?*S1", first)
        search, rows = page.get_by_role("searchbox"), page.locator("#rows li")
        await search.fill("service:172 S1")
        await first.is_held.wait()
        await search.fill("service:172 S2")
        await expect(rows).to_have_text([re.compile("S2")])

        await first.comes(page)
        await expect(rows).to_have_text([re.compile("S2")])
        assert page.url.endswith("S2")

    async def test_a_record_opened_before_a_refresh_is_shown_if_it_arrives_after_it(
        self, stage: Stage, page: Page
    ) -> None:
        """The list stays that of the refresh, because the page of the record is older."""
        for number in (1, 2):
            await stage.sandbox.airtime(service_id=173, transaction_id=f"V{number}")
        opened = LateAnswer()
        await page.route("**/_sandbox/changes", lambda route: route.fulfill(status=204))
        await page.goto(dashboard(stage, "?q=service:173"))
        await page.route("**/_sandbox/?*open=*", opened)
        await page.keyboard.press("j")
        await opened.is_held.wait()
        await stage.sandbox.airtime(service_id=173, transaction_id="V3")
        await page.get_by_role("button", name="+1 min").click()
        rows = page.locator("#rows li")
        await expect(rows).to_have_count(3)

        await opened.comes(page)
        await expect(page.locator("#rows [aria-current]")).to_contain_text("V1")
        await expect(rows).to_have_count(3)

    async def test_a_receiver_that_fails_is_named_and_retried(self, stage: Stage) -> None:
        async with receiver(500, *[200] * 35, 500) as receiver_url, stage.page() as watched:
            page, callback_url = watched.page, f"{receiver_url}?next=;touch"
            await stage.sandbox.airtime(
                service_id=61, transaction_id="R1", callback_url=callback_url
            )
            await stage.sandbox.advance(seconds=1)
            await page.goto(dashboard(stage, "?q=service:61"))

            trouble = page.get_by_label("Trouble")
            await expect(trouble).to_contain_text(f"1 callback to {callback_url}")
            await expect(page.get_by_text("Your receiver reads transaction_id")).to_be_visible()
            await trouble.get_by_role("button", name="Ask the doctor").click()
            doctor = page.get_by_role("dialog", name="What the receiver does wrong")
            await expect(doctor.locator(".alert")).to_have_text("3 checks are wrong.")
            await expect(doctor.locator("li").first).to_contain_text("do: Answer 401 to a callback")
            examine = f"sandbox-sim doctor '{callback_url}' --paid COMMAND"
            command = f"{examine} --endpoint-url {stage.url}"
            await expect(doctor.locator(".command")).to_have_text(command)
            await expect(doctor.locator("[data-copy]")).to_have_attribute("data-copy", command)
            assert await barriers(page, LOOKS[:1]) == []
            await page.keyboard.press("Escape")

            await page.locator(".timeline").get_by_role("button", name="Retry now").click()
            await expect(page.get_by_text("Callback, attempt 2 of 3")).to_be_visible()

            await page.get_by_role("button", name="Next: retry").click()
            await expect(page.locator(".timeline")).to_contain_text("Acknowledged with HTTP 200")
            await expect(trouble).to_have_count(0)

            await page.keyboard.press("r")
            await expect(page.get_by_text("Callback, attempt 4")).to_be_visible()

    async def test_a_button_advances_the_clock(self, stage: Stage, page: Page) -> None:
        await stage.sandbox.airtime(service_id=62, transaction_id="C1")
        await page.goto(dashboard(stage, "?q=service:62"))
        await page.get_by_title("Gateway time, and what is due").click()
        await expect(page.get_by_text("C1 of service 62 becomes 000")).to_be_visible()

        await page.get_by_role("button", name="+1 min", exact=True).click()

        await expect(
            page.get_by_text("1 job ran: ").or_(page.get_by_text("jobs ran: "))
        ).to_be_visible()
        await expect(page.locator("#detail header .badge").first).to_have_text("000 successful")

    async def test_a_form_adds_an_override(self, stage: Stage, page: Page) -> None:
        await stage.sandbox.airtime(service_id=63, transaction_id="O0")
        await page.goto(dashboard(stage, "?view=overrides"))
        await expect(page.get_by_label("For which requests")).to_have_value("1")
        await page.get_by_text("More: which requests").click()
        await page.locator("#match-service").fill("63")
        await expect(page.get_by_text("Of the requests so far, 1 matches.")).to_be_visible()
        await page.get_by_label("The transaction ends as").select_option("003")
        await page.get_by_role("button", name="Add").click()
        await expect(page.locator("td").first).to_have_text("Service 63")
        row = page.locator("tbody tr").first
        await expect(row).to_contain_text("The transaction ends as 003 cancelled")
        await expect(row).to_contain_text("0 of 1")

    async def test_the_preview_of_a_rule_finds_numbers_as_the_rule_does(
        self, stage: Stage, page: Page
    ) -> None:
        await stage.sandbox.airtime(service_id=81, transaction_id="P0")
        await stage.sandbox.bill(service_id=81, transaction_id="P1")
        await stage.sandbox.bulk("0244000001", "0200000003", service_id=81)
        await page.goto(dashboard(stage, "?view=faults"))
        await page.get_by_text("More: which requests").click()
        await page.locator("#match-service").fill("81")
        words = page.get_by_text("Of the requests so far")
        for number, found in (
            ("233244000001", "2 match."), ("0200000003", "1 matches."),
            ("200000000001", "1 matches."), ("0200000002", "0 match."),
        ):  # fmt: skip
            await page.locator("#match-number").fill(number)
            await expect(words).to_have_text(f"Of the requests so far, {found}")

    async def test_a_late_preview_does_not_replace_a_newer_one(
        self, stage: Stage, page: Page
    ) -> None:
        late = LateAnswer()
        await stage.sandbox.airtime(service_id=82, transaction_id="P0")
        await page.goto(dashboard(stage, "?view=overrides"))
        await page.get_by_text("More: which requests").click()
        await page.route("**/requests/find", late)
        await page.locator("#match-service").fill("82")
        await late.is_held.wait()
        await page.locator("#match-service").fill("83")
        words = page.locator("[data-preview]")
        await expect(words).to_have_text("Of the requests so far, 0 match.")

        await late.comes(page)

        await expect(words).to_have_text("Of the requests so far, 0 match.")

    @pytest.mark.decision("D16")
    async def test_each_preset_applies_to_the_next_payment(self, stage: Stage, page: Page) -> None:
        inbox = stage.sandbox.inbox_url("presets")
        presets = {
            "Declined": "ends as 001 failed",
            "Cancelled": "ends as 003 cancelled",
            "Callback twice": "is sent twice",
            "Callback lost": "No callback is sent",
            "Answer lost": "The answer is lost",
        }
        await page.goto(dashboard(stage, "?view=overrides"))
        bar = page.locator(".bar")
        assert await bar.evaluate("each => each.offsetHeight") < 60, "the bar is one line"
        hidden = bar.locator(".skip")
        assert await hidden.evaluate_all("all => all.every(each => each.offsetWidth <= 1)")
        await page.set_viewport_size(NARROW)
        assert await bar.evaluate("each => each.offsetHeight") <= NARROW["height"] / 6
        await page.set_viewport_size(DESK)
        for name, shown in presets.items():
            if name == "Answer lost":
                await page.get_by_role("link", name="Faults").click()
            await page.get_by_role("button", name=name).click()
            await expect(page.locator("tbody tr").first).to_contain_text(shown)
            await expect(page.locator("tbody tr").first).to_contain_text("0 of 1")
        await page.goto(dashboard(stage, "?q=service:73"))
        await stage.sandbox.balance(service_id=73)
        # The first one loses its answer, so it is sent from where that breaks no connection.
        body = stage.sandbox.payment(service_id=73, transaction_id="N0", callback_url=inbox)
        lost = await post(stage.sandbox, "requests/send", path="/make_payment", body=body)
        assert lost.body["status"] is None
        for number in range(1, 5):
            await stage.sandbox.airtime(
                service_id=73, transaction_id=f"N{number}", callback_url=inbox
            )
        # The page opens the newest payment until a person opens another one.
        await expect(page.locator("#rows [aria-current]")).to_contain_text("N4")
        await expect(page.locator("#detail")).to_contain_text("transaction N4")
        await stage.sandbox.advance(seconds=1)

        found = await get(stage.sandbox, "transactions?service_id=73")
        statuses = {each["transaction_id"]: each["status"] for each in found["transactions"]}
        assert statuses == {"N0": "001", "N1": "003", "N2": "000", "N3": "000", "N4": "000"}
        calls = await get(stage.sandbox, "callbacks?service_id=73")
        sent = Counter(each["transaction_id"] for each in calls["callbacks"] if each["attempts"])
        assert sent == {"N0": 1, "N1": 1, "N2": 2, "N4": 1}

    async def test_a_refresh_keeps_the_input_of_a_form(self, stage: Stage, page: Page) -> None:
        await page.goto(dashboard(stage, "?view=faults"))
        await page.get_by_text("More: which requests").click()
        await page.locator("#match-service").fill("69")
        await page.get_by_label("The answer").select_option("fixed")
        await page.get_by_role("heading", name="Add a fault").click()
        now = await page.locator("#clock .now").inner_text()

        await stage.sandbox.airtime(service_id=72, transaction_id="F1")
        await stage.sandbox.advance(seconds=1)

        await expect(page.locator("#clock .now")).not_to_have_text(now)
        await expect(page.locator("#match-service")).to_have_value("69")
        await expect(page.get_by_label("Milliseconds", exact=True)).to_be_visible()

    async def test_a_button_empties_an_inbox(self, stage: Stage, page: Page) -> None:
        inbox = stage.sandbox.inbox_url("browser")
        await stage.sandbox.airtime(service_id=71, transaction_id="I1", callback_url=inbox)
        await stage.sandbox.advance(seconds=1)
        await page.goto(dashboard(stage, "inbox/browser"))
        await expect(page.get_by_role("article")).to_have_count(1)
        await page.get_by_role("button", name="Empty this inbox").click()

        await expect(page.get_by_text("No callbacks yet")).to_be_visible()

    async def test_a_form_adds_every_kind_of_fault(self, stage: Stage, page: Page) -> None:
        kinds: dict[str, tuple[dict[str, str], str]] = {
            "status": (
                {"Seconds in Retry-After": "7", "Probability": "0.5"},
                "The answer is HTTP 429 with Retry-After 7; the probability is 0.5",
            ),
            "lognormal": (
                {"Median": "90", "Sigma": "0.4"},
                "The answer comes late: lognormal, median 90 ms, sigma 0.4",
            ),
            "timeout": ({}, "The answer never comes; the request is not processed"),
        }
        await page.goto(dashboard(stage, "?view=faults"))
        await page.get_by_text("More: which requests").click()
        for kind, (fields, shown) in kinds.items():
            await page.locator("#match-service").fill("69")
            await page.get_by_label("The answer").select_option(kind)
            for label, value in fields.items():
                await page.get_by_label(label).locator("visible=true").fill(value)
            if kind == "timeout":
                await page.get_by_label("The request").select_option("false")
            await page.get_by_role("button", name="Add").click()
            await expect(page.get_by_role("cell", name=shown, exact=True)).to_be_visible()
        await page.get_by_role("button", name="Remove all").click()
        await expect(page.get_by_text("No faults")).to_be_visible()

    async def test_a_form_sends_requests_with_magic_values(self, stage: Stage, page: Page) -> None:
        await page.goto(dashboard(stage, "?q=service:64"))
        await (
            page.get_by_role("button", name="Send a payment")
            .or_(page.get_by_role("button", name="Send a request"))
            .first.click()
        )
        await page.get_by_role("button", name="015 declined").click()
        body = page.get_by_label("Body of")
        text = (await body.input_value()).replace('"service_id": 55', '"service_id": 64')
        await body.fill(text)
        await page.get_by_role("button", name="Send", exact=True).click()

        await expect(page.locator(".answer")).to_contain_text('"response_code": "015"')
        await expect(page.locator("#rows li")).to_contain_text("015 declined")

    async def test_buttons_seed_save_a_snapshot_and_reset(self, stage: Stage, page: Page) -> None:
        page.on("dialog", lambda dialog: dialog.accept())
        await page.goto(dashboard(stage, "?q=service:65"))
        await page.get_by_role("button", name="More actions").click()
        await page.get_by_role("button", name="Seed").click()
        await expect(page.locator("#rows li").first).to_be_visible()

        await page.get_by_role("button", name="More actions").click()
        await page.get_by_label("Name").fill("before")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("The snapshot was saved")).to_be_visible()
        await page.get_by_role("button", name="More actions").click()
        snapshots = page.get_by_role("list", name="Snapshots")
        await expect(snapshots).to_contain_text("before")
        await snapshots.get_by_role("button", name="Delete").click()
        await expect(snapshots.get_by_role("listitem")).to_have_count(0)
        await page.locator("#reset-service").fill("65")
        await page.get_by_role("button", name="Reset").click()

        await expect(page.get_by_text("Nothing matches")).to_be_visible()

    async def test_keys_choose_records_search_and_show_help(self, stage: Stage, page: Page) -> None:
        for number in (1, 2):
            await stage.sandbox.airtime(service_id=66, transaction_id=f"K{number}")
        await page.goto(dashboard(stage, "?q=service:66"))
        await expect(page.locator("#rows [aria-current]")).to_contain_text("K2")

        await page.keyboard.press("j")
        await expect(page.locator("#rows [aria-current]")).to_contain_text("K1")
        await page.keyboard.press("/")
        await page.keyboard.type("service:66 K2")
        await expect(page.locator("#rows li")).to_have_count(1)
        await page.keyboard.press("Escape")
        await page.locator("h1").first.click()
        await page.keyboard.press("?")
        await expect(page.get_by_role("heading", name="Keyboard and search")).to_be_visible()

    async def test_a_record_stays_open_after_a_refresh_that_begins_before_it_arrives(
        self, stage: Stage, page: Page
    ) -> None:
        for number in (1, 2):
            await stage.sandbox.airtime(service_id=171, transaction_id=f"R{number}")
        opened, refreshed = LateAnswer(), LateAnswer()
        await page.route("**/_sandbox/changes", lambda route: route.fulfill(status=204))
        await page.goto(dashboard(stage, "?q=service:171"))
        await page.route("**/_sandbox/?q=service:171", refreshed)
        await page.route("**/_sandbox/?*open=*", opened)
        await page.keyboard.press("j")
        await opened.is_held.wait()
        await page.get_by_role("button", name="+1 min").click()
        await refreshed.is_held.wait()
        await opened.comes(page)
        current = page.locator("#rows [aria-current]")
        await expect(current).to_contain_text("R1")

        await refreshed.comes(page)
        await expect(current).to_contain_text("R1")


async def test_a_refresh_keeps_the_focus_of_a_row_and_of_the_clock(
    stage: Stage, page: Page
) -> None:
    inbox = stage.sandbox.inbox_url("focus")
    await stage.sandbox.airtime(service_id=84, transaction_id="K0", callback_url=inbox)
    await page.goto(dashboard(stage, "?q=service:84"))
    focused = page.locator(":focus")
    for selector, name in (("#rows a", "K0"), ("#clock summary", "Gateway time")):
        await page.locator(selector, has_text=name).focus()
        count = await page.locator("#rows li").count()

        await stage.sandbox.airtime(service_id=84, transaction_id=f"K{count}", callback_url=inbox)

        await expect(page.locator("#rows li")).to_have_count(count + 1)
        await expect(focused).to_contain_text(name)


async def test_a_button_that_was_pressed_by_the_keyboard_keeps_the_focus(browser: Browser) -> None:
    """With the first step the clock gets another button."""
    async with open_stage(browser) as stage, stage.page() as watched:
        page, clock = watched.page, watched.page.locator("#clock")
        stage.sandbox.gateway.clock.set_to(ClockState())
        await page.goto(dashboard(stage))
        await page.get_by_role("button", name="+1 min").focus()

        await page.keyboard.press("Enter")

        await expect(clock.get_by_text("Machine's time")).to_have_count(1)
        await expect(page.locator(":focus")).to_have_text("+1 min")
        await expect(page.locator(":focus")).to_be_visible()


async def test_hostile_text_runs_no_script(stage: Stage) -> None:
    hostile = {"transaction_id": HOSTILE, "reference": HOSTILE, "nickname": HOSTILE}
    await stage.sandbox.collect(service_id=67, customer_number="0200000001", **hostile)
    await stage.sandbox.sms(
        service_id=67, customer_number="0200000001", msg_body=HOSTILE, sender_id=HOSTILE
    )
    await stage.sandbox.advance(seconds=1)
    async with stage.page(viewport=PHONE) as watched:
        page = watched.page
        page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        for path in (*(f"?view={view}&q=service:67" for view in ALL_VIEWS), "handset/0200000001"):
            await page.goto(dashboard(stage, path))
            assert await page.locator("img, script:not([src])").count() == 0, path
        await expect(page.locator(".bubble")).to_contain_text("<script>alert(1)")


async def test_settings_are_changed_and_restored_on_the_page(stage: Stage, page: Page) -> None:
    await page.goto(dashboard(stage))
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("link", name="Settings").click()
    await page.get_by_label("duplicates").select_option("reject")
    await page.get_by_label("sms_transition_ms").fill("5")
    await page.get_by_role("button", name="Change", exact=True).click()

    await expect(page.get_by_text("changed", exact=True)).to_have_count(2)
    await page.goto(dashboard(stage))
    await page.get_by_role("link", name="Settings (2 changed)").click()
    await expect(page.get_by_text('Configured: "accept".')).to_be_visible()
    assert stage.sandbox.gateway.behaviour.present.given == {
        "duplicates": "reject",
        "sms_transition_ms": 5,
    }

    await page.get_by_role("button", name="Undo all changes").click()
    await expect(page.get_by_text("changed", exact=True)).to_have_count(0)


@pytest.mark.parametrize("path", ["", "handset/0244000001"])
async def test_a_page_says_that_its_buttons_need_javascript(
    stage: Stage, browser: Browser, path: str
) -> None:
    context = await browser.new_context(java_script_enabled=False)
    try:
        page = await context.new_page()
        await page.goto(dashboard(stage, path))
        note = page.locator("noscript > p")  # Playwright finds no text there
        await expect(note).to_be_visible()
        assert await note.inner_text() == "The buttons of this page need JavaScript."
    finally:
        await context.close()


async def test_each_wrong_setting_has_its_problem_beside_it(
    stage: Stage, page: Page, watched: WatchedPage
) -> None:
    await page.goto(dashboard(stage, "?view=settings"))
    for name in ("sms_transition_ms", "settle_delay_ms"):
        await page.get_by_label(name).fill("-1")
    await page.get_by_role("button", name="Change", exact=True).click()

    for name in ("sms_transition_ms", "settle_delay_ms"):
        problem = page.get_by_label(name).locator("+ .problem")
        await expect(problem).to_have_text(re.compile(f"^{name} .* greater than or equal to 0$"))
    watched.problems.clear()  # the request was refused


async def test_the_reference_sends_requests(stage: Stage, page: Page, watched: WatchedPage) -> None:
    await page.goto(dashboard(stage, "docs#post_ledger_topup"))
    topup = page.locator("[data-path='ledger/topup']")
    await topup.get_by_label("Body").fill('{"service_id": 74, "units": 5}')
    await topup.get_by_role("button", name="Send").click()
    await expect(topup.get_by_role("status")).to_contain_text('HTTP 200\n{\n  "service_id": 74')

    await page.goto(dashboard(stage, "docs#get_transactions_id"))
    one = page.locator("[data-path='transactions/{id}']")
    await one.get_by_label("id").fill("none/such")
    await one.get_by_role("button", name="Send").click()
    await expect(one.get_by_role("status")).to_contain_text("HTTP 404")
    await expect(one.get_by_role("status")).to_contain_text("none/such")

    await page.locator("#send_airtime > summary").click()
    await page.locator("#send_airtime").get_by_role("button", name="Send a request").click()
    dialog = page.get_by_role("dialog", name="Send a request")
    await dialog.get_by_role("button", name="Send", exact=True).click()
    await expect(dialog.get_by_role("status")).to_contain_text('"response_code": "202"')
    watched.problems.clear()  # the 404, which Chromium counts as an error

    await page.goto(dashboard(stage, "docs#post_overrides"))
    # Every section has the same markup, and axe takes long for all of them.
    await page.evaluate(
        "document.querySelectorAll('main section:not(:has(#post_overrides))')"
        ".forEach(each => each.remove())"
    )
    await expect(page.locator("#post_overrides")).to_have_attribute("open", "")
    assert await barriers(page) == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def filled_pages(stage: Stage) -> dict[str, str]:
    """The path of each page by its name, with records on all pages."""
    service = 68
    card = await stage.sandbox.card(service_id=service, transaction_id="card")
    await stage.sandbox.airtime(
        service_id=service, transaction_id="gone", callback_url="http://127.0.0.1:9/"
    )
    await stage.sandbox.sms(service_id=service, customer_number="0270000001")
    await stage.sandbox.advance(seconds=1)
    await stage.sandbox.collect(service_id=service, customer_number="0270000001")
    return {
        **{view: f"?view={view}&q=service:{service}" for view in ALL_VIEWS},
        "nothing found": "?q=nothing",
        "timeline": "?only=timeline",
        "handset": "handset/0270000001",
        "inbox": "inbox/orders",
        "rules": "rules",
        "payment page": card.body["redirect_url"].partition("/_sandbox/")[2],
    }


@pytest.mark.parametrize(
    "names",
    [ALL_VIEWS[:4], ALL_VIEWS[4:], OTHER_PAGES],
    ids=["records", "ledger and settings", "other pages"],
)
async def test_the_pages_have_no_accessibility_barriers(
    stage: Stage, page: Page, filled_pages: dict[str, str], names: tuple[str, ...]
) -> None:
    found: dict[str, list[str]] = {}
    for name in names:
        await page.goto(dashboard(stage, filled_pages[name]))
        await without_repeats(page)
        found[name] = await barriers(page)

    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.usefixtures("filled_pages")
async def test_dialogs_and_screen_have_no_accessibility_barriers(stage: Stage, page: Page) -> None:
    found: dict[str, list[str]] = {}
    await page.goto(dashboard(stage))
    for name in ("Send a request", "More actions"):
        await page.get_by_role("button", name=name).click()
        found[name] = await barriers(page)
        await page.keyboard.press("Escape")
    await page.goto(f"{stage.shop_url}/screen")
    found["screen"] = await barriers(page)

    assert {name: problems for name, problems in found.items() if problems} == {}


async def test_the_control_token_is_entered_once(browser: Browser) -> None:
    settings: dict[str, Any] = {"control_token": "s3cret"}
    async with open_stage(browser, **settings) as stage, stage.page() as watched:
        page = watched.page
        await page.goto(dashboard(stage, "?q=0244"))
        assert await barriers(page, LOOKS[:1]) == []
        await page.get_by_label("Control token").fill("s3cret")
        await page.get_by_role("button", name="Log in").click()

        await page.wait_for_url(dashboard(stage, "?q=0244"))
        await page.get_by_role("button", name="+1 min").click()
        await expect(page.get_by_text("The clock moved")).to_be_visible()

        await page.context.clear_cookies()
        await page.get_by_role("button", name="+1 min").click()
        await expect(page.get_by_text("You are logged out")).to_be_visible()
        watched.problems.clear()  # the request was refused


@pytest.mark.parametrize("path", ["", "handset/0244000001"])
async def test_a_page_whose_session_has_ended_goes_to_the_login(
    browser: Browser, path: str
) -> None:
    settings: dict[str, Any] = {"control_token": "s3cret"}
    async with open_stage(browser, **settings) as stage, stage.page() as watched:
        page, feeds = watched.page, 0

        async def end_session(route: Route) -> None:
            nonlocal feeds
            feeds += 1
            if feeds == 1:  # the page refreshes itself before the browser connects again
                await route.fulfill(content_type="text/event-stream", body="retry: 1000\n\n")
            else:
                await page.context.clear_cookies()
                await route.continue_()

        await page.goto(dashboard(stage, path))
        await page.get_by_label("Control token").fill("s3cret")
        await page.route(feed := re.compile("/(changes|events)$"), end_session)
        await page.get_by_role("button", name="Log in").click()

        await page.wait_for_url(dashboard(stage, path))
        await page.wait_for_url("**/login?next=*")
        await page.unroute(feed)
        await page.get_by_label("Control token").fill("s3cret")
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url(dashboard(stage, path))
        watched.problems.clear()  # the feed was refused


@pytest.mark.decision("D39", "D44")
async def test_a_stuck_payment_is_settled_and_the_books_are_corrected(browser: Browser) -> None:
    settings: dict[str, Any] = {
        "production": True, "allow_memory": True, "credentials": [LIVE, BUILT_IN],
        "networks": {"silent": SILENT}, "routes": [{"network": "silent"}],
        "callback_hosts": {"allow": ["127.0.0.0/8"]},
    }  # fmt: skip
    async with open_stage(browser, **settings) as stage, stage.page() as watched:
        page = watched.page
        stage.sandbox.headers["Authorization"] = basic("live_key", "live_secret")
        await stage.sandbox.collect(transaction_id="T1", request_time="2026-01-31 09:30:00")
        await stage.sandbox.advance(minutes=2)

        await page.goto(dashboard(stage))
        await page.get_by_role("link", name="Show why").click()
        rows = page.locator("#rows")
        await rows.get_by_role("button", name="Ask the network now").click()
        await expect(page.locator("#toast")).to_have_text("network silent says pending")
        assert await barriers(page) == []
        await page.set_viewport_size(DESK)
        await rows.get_by_role("link", name="Settle…").click()
        settle = page.get_by_role("dialog", name="Settle by hand")
        await expect(settle).to_be_visible()
        await page.keyboard.press("Escape")
        await page.locator("#detail").get_by_role("button", name="Settle…").click()
        await settle.get_by_label("Status").select_option("000")
        await settle.get_by_label("Why").fill("on their list")
        await settle.get_by_label("Your name").fill("Ama")
        assert await barriers(page) == []
        late = LateAnswer()  # the page refreshes before it has the answer
        await page.route("**/settle", late)
        await settle.get_by_role("button", name="Settle", exact=True).click()
        await expect(page.locator("#troubles")).to_have_text("")
        await late.comes(page)

        await expect(page.locator("#detail")).to_contain_text("Ama: on their list")

        await page.goto(dashboard(stage, "?view=ledger"))
        await correct_the_books(page)
        await stage.sandbox.advance(days=1)
        await close_a_period(page)
        watched.problems.clear()  # the refusals, which Chromium counts as errors


async def fill(form: Locator, **fields: str) -> None:
    """Fill the form of an entry, and sign it."""
    for name, value in {"reason": "slip 3", "by": "Ama", **fields}.items():
        field = form.locator(f"[name={name}]")
        is_choice = await field.evaluate("each => each.matches('select')")
        await (field.select_option(value) if is_choice else field.fill(value))
    await form.get_by_role("button").click()


async def correct_the_books(page: Page) -> None:
    """Move 4 into suspense and out of it; an error is shown at its field."""
    adjust = page.locator("[data-post-form='ledger/adjust']")
    await page.get_by_text("Write a correction").click()
    await fill(adjust, amount="0")
    refused = adjust.get_by_label("Amount")
    await expect(refused).to_have_accessible_description(re.compile("amount must be an amount"))
    await expect(refused).to_be_focused()
    await fill(adjust, amount="4", credit="suspense")
    await expect(adjust.get_by_label("Amount")).to_have_accessible_description("")
    await expect(adjust.get_by_label("Payment")).to_have_accessible_description(
        re.compile("must name its payment")
    )
    assert await barriers(page) == []
    await fill(adjust, transaction="T1")
    moved = "4 from service/55/collection/GHS to suspense/GHS"
    await expect(page.locator("#toast")).to_contain_text(moved)

    resolve = page.locator("[data-post-form='ledger/resolve']")
    await page.get_by_text("Resolve what is in suspense (1)").click()
    await expect(resolve.get_by_label("Payment")).to_contain_text("T1 of service 55: 4 GHS came in")
    await fill(resolve, to="fees", amount="5")
    await expect(resolve.get_by_label("Amount")).to_have_accessible_description(
        re.compile("4 is in suspense")
    )
    await fill(resolve, amount="", reference="case 7")
    await expect(page.locator("#toast")).to_contain_text("4 from suspense/GHS to fees/GHS")
    newest = page.get_by_role("region", name="Postings").locator("tbody tr").first
    await expect(newest).to_contain_text("resolved, Ama: slip 3 (case 7)")
    await expect(page.get_by_text("Nothing is in suspense")).to_be_visible()


async def close_a_period(page: Page) -> None:
    """Pay out what is left of the collection: 10.50 less 4."""
    close = page.locator("[data-post-form='ledger/close']")
    await page.get_by_text("Pay a merchant: close a period").click()
    await fill(close, until="2026-01-02")
    await expect(close.get_by_label("Last day")).to_have_accessible_description(
        re.compile("until is 2026-01-03T00:00:00")
    )
    await fill(close, until="2026-01-01")
    await expect(page.locator("#toast")).to_have_text("Period 1 is closed: 6.5 GHS in 2 lines")
    await expect(page.get_by_role("region", name="Balances")).to_contain_text("collection000")
