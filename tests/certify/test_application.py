"""How certify.toml asks an application: requests, commands, and answers that lack a value."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.certify.application import (
    ApplicationHangs,
    ApplicationUnreachable,
    ConfiguredApplication,
    OrderRefused,
    OrderUnreadable,
    send,
)
from sandbox_sim.certify.bench import open_bench
from sandbox_sim.certify.case_run import CaseRun
from sandbox_sim.certify.cases import CertifyCase, PlacedOrder, State
from sandbox_sim.certify.verdicts import CaseVerdict, Result
from sandbox_sim.testing import SandboxGateway
from tests.certify.applications import Forgetful, case_of, configuration
from tests.cli.fake_servers import FakeServer, http_server
from tests.conftest import basic
from tests.kit.requests import collection

SOON = timedelta(seconds=5)


def application(**tables: Any) -> ConfiguredApplication:
    document = {"order": {"command": "echo {reference}"}, "state": {"command": "echo NEW"}}
    return ConfiguredApplication(configuration(**{**document, **tables}), "http://gateway:1")


@pytest.fixture
def shop() -> Iterator[FakeServer]:
    with http_server() as server:
        server.answers(200, {}, '{"order": {"ids": [7]}}')
        yield server


def test_placeholders_in_json_and_headers_are_filled_and_numbers_stay_numbers(
    shop: FakeServer,
) -> None:
    body = {
        "to": "{gateway}",
        "service": "{service_id}",
        "lines": [{"price": "{amount}", "for": "GHS {amount}"}],
    }
    headers = {"X-Service": "{service_id}", "Authorization": "Bearer token-1 {phone}"}
    order = {
        "url": f"{shop.url}/pay/{{phone}}",
        "headers": headers,
        "json": body,
        "field": "order.ids.0",
    }
    tested = application(order=order)

    assert tested.place(PlacedOrder(amount="12.50"), "R1", SOON) == "7"

    (sent,) = shop.requests
    assert (sent.method, sent.path) == ("POST", "/pay/0244000001")
    assert sent.headers["x-service"] == "55"
    assert sent.headers["authorization"] == "Bearer token-1 0244000001"
    assert tested._configuration.secrets == {"sandbox_secret", "Bearer token-1 "}
    assert json.loads(sent.body) == {
        "to": "http://gateway:1",
        "service": 55,
        "lines": [{"price": 12.5, "for": "GHS 12.50"}],
    }


def test_each_case_has_its_own_service_if_orders_name_the_service() -> None:
    order = {"command": "{reference} {service_id}"}
    made = configuration(application={"service_id": 57}, order=order)

    assert made.services(3) == [57, 58, 60, 61]
    assert made.for_service(60).gateway_settings("memory:", 0)["credentials"] == [
        {"client_key": "sandbox_key", "secret_key": "sandbox_secret", "service_ids": [60]}
    ]
    assert made.model_copy(update={"at_once": 1}).services(3) == [57]


def test_a_pattern_also_matches_headers_and_redirects_are_not_followed(
    shop: FakeServer,
) -> None:
    shop.answers(303, {"location": "/orders/A-9"}, "")
    order = {
        "url": shop.url,
        "form": {"phone": "{phone}", "other_form": "{phone_233}"},
        "pattern": r"Location: /orders/(\S+)",
    }

    assert application(order=order).place(PlacedOrder(), "R1", SOON) == "A-9"
    assert [each.body for each in shop.requests] == [b"phone=0244000001&other_form=233244000001"]


@pytest.mark.parametrize(
    ("answer", "problem", "shown"),
    [
        ((402, {}, "declined"), OrderRefused, "HTTP 402, declined"),
        (
            (303, {"X-Shop": "Ama"}, ""),
            ApplicationUnreachable,
            r"field finds no number .*: HTTP 303, .*X-Shop: Ama",
        ),
        (
            (200, {}, "<head><title>Shop</title></head><h1>Thank you</h1>"),
            ApplicationUnreachable,
            r": HTTP 200, Thank you$",
        ),
    ],
)
def test_an_answer_that_refuses_or_has_no_number_is_shown(
    shop: FakeServer,
    answer: tuple[int, dict[str, str], str],
    problem: type[Exception],
    shown: str,
) -> None:
    shop.answers(*answer)

    with pytest.raises(problem, match=shown):
        application(order={"url": shop.url, "json": {}, "field": "id"}).place(
            PlacedOrder(), "R1", SOON
        )


def test_a_pattern_whose_group_is_left_out_finds_nothing(shop: FakeServer) -> None:
    order = {"url": shop.url, "form": {}, "pattern": r'"ids"(: none)?'}
    with pytest.raises(ApplicationUnreachable, match=r"^order\.pattern finds no number"):
        application(order=order).place(PlacedOrder(), "R1", SOON)


def test_an_answer_without_a_match_is_shown_as_the_pattern_reads_it(
    shop: FakeServer,
) -> None:
    shop.answers(302, {"location": "/thanks/7"}, "<p>Redirecting to /thanks/7</p>")
    order = {"url": shop.url, "form": {}, "pattern": r"Location: /orders/(\S+)"}
    with pytest.raises(
        ApplicationUnreachable, match=r"^order\.pattern finds .*, Location: /thanks/7$"
    ):
        application(order=order).place(PlacedOrder(), "R1", SOON)

    shop.answers(200, {}, "<head></head><b class=status>PAID</b>")
    state = {"url": shop.url, "pattern": 'class="status">(.*)<'}
    with pytest.raises(
        OrderUnreadable, match=r"^state\.pattern finds .*, <b class=status>PAID</b>$"
    ):
        application(state=state).state("7")


def test_a_restart_or_a_command_that_does_not_end_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "sandbox_sim.certify.application.RESTART_TIMEOUT", timedelta(milliseconds=10)
    )
    order = {"command": "sleep 60 # {reference}"}

    with pytest.raises(ApplicationUnreachable, match="restart must end, and leave the application"):
        application(application={"restart": "exec sleep 60"}).restart()
    with pytest.raises(ApplicationHangs, match="did not end in time: sleep 60"):
        application(order=order).place(PlacedOrder(), "R1", timedelta(milliseconds=50))


def test_a_command_gets_each_value_as_one_argument(tmp_path: Path) -> None:
    order = {"command": f"printf '%s|' {{phone}} {{reference}} > {tmp_path}/out"}

    number = application(order=order).place(PlacedOrder(), "a b; exit 3", SOON)

    assert number == "a b; exit 3"
    assert (tmp_path / "out").read_text() == "0244000001|a b; exit 3|"


def test_words_map_the_output_of_the_application_to_a_state() -> None:
    assert application(state={"command": "echo GONE"}).state("1") == "failed"

    with pytest.raises(ApplicationUnreachable, match="'SHIPPED' is not listed in"):
        application(state={"command": "echo SHIPPED"}).state("1")


def test_an_answer_without_a_state_differs_from_a_missing_answer(shop: FakeServer) -> None:
    shop.answers(404, {}, "no such order")
    with pytest.raises(OrderUnreadable, match="HTTP 404, no such order"):
        application(state={"url": shop.url, "field": "state"}).state("1")

    with pytest.raises(ApplicationUnreachable, match="exits with 3: echo no; exit 3"):
        application(state={"command": "echo no; exit 3"}).state("1")


def test_a_restart_may_leave_the_application_in_the_background() -> None:
    begun = SystemClock.monotonic()

    application(application={"restart": "sleep 5 &"}).restart()

    assert SystemClock.monotonic() - begun < 5


def test_a_configured_command_counts_the_receipts() -> None:
    counting = {"receipts": {"command": "echo 2"}}

    assert application(application=counting).receipts("1") == 2
    assert application().receipts("1") is None
    with pytest.raises(ApplicationUnreachable, match="'two' is not a number"):
        application(application={"receipts": {"command": "echo two"}}).receipts("1")


READ: Sequence[dict[str, Any]] = ({"order": {}}, {"wait_polls": 1}, {"becomes": "paid"})
FORGED: Sequence[dict[str, Any]] = (
    {"order": {}},
    {"post": {"signature": "none"}},
    {"stays": "pending"},
)
TIMES = {"polls_every": "10ms", "reacts_within": "100ms"}
ENDS_AS = [(False, CaseVerdict.FAILED), (True, CaseVerdict.INCONCLUSIVE)]


def judged(made: Callable[[str], Any], case: CertifyCase, until: float = 1e12) -> Result:
    """The result of a case. made: creates the application for the address of a gateway."""
    table = {"gateway": {"port": 0}, "application": TIMES}
    with open_bench(configuration(**table), SandboxGateway) as bench:
        return CaseRun(bench, made(bench.gateway_url), case, until).run()


@pytest.mark.parametrize(("control", "verdict"), ENDS_AS)
def test_an_unreadable_order_fails_a_case_and_makes_a_control_inconclusive(
    control: bool, verdict: CaseVerdict
) -> None:
    case = case_of(*READ, control=control)

    assert judged(lambda _: Forgetful(), case)[1:3] == (verdict, "HTTP 404")
    late = judged(lambda _: Forgetful(), case, until=0)
    assert late.verdict is CaseVerdict.INCONCLUSIVE
    assert late.reason == "the limit of the run, 10m, is used up"


class Ended(Forgetful):
    """Its process ends after an order, or before. takes_orders: whether it ends after."""

    def __init__(self, *, takes_orders: bool) -> None:
        self.takes_orders = takes_orders

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        if not self.takes_orders:
            send("POST", "http://127.0.0.1:1/orders", b"", {}, within)
        return reference

    def state(self, order: str) -> State:
        send("GET", "http://127.0.0.1:1/orders/1", None, {}, SOON)
        return "pending"


@pytest.mark.parametrize(
    ("takes_orders", "control", "verdict"),
    [
        (True, False, CaseVerdict.FAILED),
        (True, True, CaseVerdict.INCONCLUSIVE),
        (False, False, CaseVerdict.INCONCLUSIVE),
    ],
)
def test_an_application_that_ends_after_an_order_fails_its_case(
    takes_orders: bool, control: bool, verdict: CaseVerdict
) -> None:
    result = judged(lambda _: Ended(takes_orders=takes_orders), case_of(*READ, control=control))

    assert result.verdict is verdict
    assert result.reason.endswith(" failed: Connection refused")
    now = "the application took the order, and refuses connections now: GET "
    assert result.reason.startswith(now) is (verdict is CaseVerdict.FAILED)


class Refusing(Forgetful):
    """Refuses each order with this HTTP status."""

    def __init__(self, status: int) -> None:
        self.status = status

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        raise OrderRefused(self.status)


@pytest.mark.parametrize(
    ("status", "verdict", "reason"),
    [
        (402, CaseVerdict.PASSED, ""),
        (500, CaseVerdict.FAILED, "the application answered HTTP 500, and must show the order as "),
    ],
)
def test_an_order_that_must_fail_may_be_refused_but_not_crash(
    status: int, verdict: CaseVerdict, reason: str
) -> None:
    case = case_of({"order": {}}, {"becomes": ["failed", "cancelled"]})

    result = judged(lambda _: Refusing(status), case)

    assert (result.verdict, result.reason) == (verdict, reason and f"{reason}failed or cancelled")


class Crashing(Forgetful):
    """Closes the connection of a callback, or of an order, without an answer.

    gateway: where it sends the payment of an order. shop: what closes the connections.
    """

    def __init__(self, gateway: str, shop: str, *, crashes_at_orders: bool = False) -> None:
        self.gateway = gateway
        self.shop = shop
        self.crashes_at_orders = crashes_at_orders

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        payment = collection(reference, customer_number=order.phone, callback_url=self.shop)
        to = self.shop if self.crashes_at_orders else f"{self.gateway}/make_payment"
        headers = {"Authorization": basic("sandbox_key", "sandbox_secret"), "User-Agent": "shop"}
        send("POST", to, json.dumps(payment).encode(), headers, within)
        return reference

    def state(self, order: str) -> State:
        return "pending"


def test_a_crash_at_a_forged_callback_pays_no_order(shop: FakeServer) -> None:
    shop.hangs_up = True

    result = judged(lambda gateway: Crashing(gateway, shop.url), case_of(*FORGED))

    assert (result.verdict, result.reason) == (CaseVerdict.PASSED, "")
    assert "closed the connection without an answer" in str(result.events)


@pytest.mark.parametrize(("control", "verdict"), ENDS_AS)
def test_a_crash_at_an_order_fails_a_case_and_makes_a_control_inconclusive(
    shop: FakeServer, control: bool, verdict: CaseVerdict
) -> None:
    shop.hangs_up = True

    result = judged(
        lambda gateway: Crashing(gateway, shop.url, crashes_at_orders=True),
        case_of(*FORGED, control=control),
    )

    assert result.verdict is verdict
    assert result.reason == f"POST {shop.url}: it closed the connection without an answer"
