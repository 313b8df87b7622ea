"""`sandbox_gateway.certify` tries the cases on an application that a test reaches by functions."""

from typing import Any, Final
from unittest import SkipTest

import pytest
import requests

from sandbox_sim import SandboxGateway
from sandbox_sim.certify.fixture import CertifyOrder
from tests.kit.requests import collection

STATES: Final = {"000": "paid", "001": "failed", "002": "pending", "003": "cancelled"}


class AskingShop:
    """A shop without a receiver: it asks for the status when the state of an order is read."""

    def __init__(self, gateway: SandboxGateway) -> None:
        self.gateway = gateway
        self.states = dict(STATES)

    def place(self, order: CertifyOrder) -> str | None:
        payment = collection(
            order.reference,
            service_id=self.gateway.service_id,
            amount=float(order.amount),
            nw=order.network,
            customer_number=order.phone,
            callback_url=self.gateway.inbox_url(),
        )
        try:
            answer = self._post("make_payment", payment)
        except requests.RequestException:
            return order.reference  # it may have arrived
        return order.reference if answer["response_code"] == "202" else None

    def state(self, number: str) -> str:
        answer = self._post("get_transaction_status", {"transaction_id": number})
        if answer["response_code"] != "000":
            return "pending"
        return self.states[answer["response_data"]["status"]]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        gateway = self.gateway
        body = {"service_id": gateway.service_id, **body}
        return requests.post(
            f"{gateway.url}/{path}", json=body, auth=gateway.auth, timeout=1
        ).json()


@pytest.fixture
def shop(sandbox_gateway: SandboxGateway) -> AskingShop:
    return AskingShop(sandbox_gateway)


@pytest.mark.parametrize(
    "case", ["success", "declined_at_once", "answer_lost", "forged_body", "swapped_callbacks"]
)
def test_a_good_application_passes_a_case(
    sandbox_gateway: SandboxGateway, shop: AskingShop, case: str
) -> None:
    sandbox_gateway.certify(case, place_order=shop.place, state_of=shop.state)


def test_a_failed_case_shows_the_remedy_and_the_timeline(
    sandbox_gateway: SandboxGateway, shop: AskingShop
) -> None:
    shop.states["002"] = "paid"

    with pytest.raises(AssertionError) as error:
        sandbox_gateway.certify("success", place_order=shop.place, state_of=shop.state)

    text = str(error.value)
    assert "FAILED          success: An ordinary payment\n" in text
    assert "the order is paid, and must be pending" in text
    assert "mend:\n                    if answer" in text
    assert "application to gateway: status CERTIFY-" in text


def test_a_payment_that_is_sent_again_at_once_after_429_fails(
    sandbox_gateway: SandboxGateway, shop: AskingShop
) -> None:
    def place(order: CertifyOrder) -> str | None:
        return shop.place(order) or shop.place(order)

    with pytest.raises(AssertionError, match=r"it sent again within .*s, and Retry-After asks for"):
        sandbox_gateway.certify("too_many_requests", place_order=place, state_of=shop.state)


def test_the_reason_names_the_service_of_the_test(
    sandbox_gateway: SandboxGateway, shop: AskingShop
) -> None:
    with pytest.raises(AssertionError, match=f"service {sandbox_gateway.service_id} came to"):
        sandbox_gateway.certify(
            "success", place_order=lambda order: order.reference, state_of=lambda _: "pending"
        )


def test_an_application_that_raises_makes_the_control_inconclusive(
    sandbox_gateway: SandboxGateway, shop: AskingShop
) -> None:
    def state(number: str) -> str:
        raise LookupError(number)

    with pytest.raises(AssertionError, match=r"INCONCLUSIVE +control_paid.*\n.*state_of raised"):
        sandbox_gateway.certify("success", place_order=shop.place, state_of=state)


def test_words_map_the_answers_of_the_application_to_states(
    sandbox_gateway: SandboxGateway, shop: AskingShop
) -> None:
    def state(number: str) -> str:
        return f"is {shop.state(number)}"

    with pytest.raises(AssertionError, match=r"say with words=\{'is paid': …\} which state"):
        sandbox_gateway.certify("success", place_order=shop.place, state_of=state)

    words: Any = {f"is {each}": each for each in STATES.values()}
    sandbox_gateway.certify("success", place_order=shop.place, state_of=state, words=words)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("gateway_restarted", "this gateway keeps its records in memory, so it cannot restart"),
        ("application_restarted", r"certify\(…\) was called without restart_application"),
        ("card_paid", r"certify\(…\) was called without cards=True"),
        ("refund_paid_out", r"certify\(…\) was called without refund_order"),
        ("receipt_refused", r'certify\(…\) was called without receipts_of="sms"'),
    ],
)
def test_a_case_that_is_not_applicable_is_skipped_with_the_reason(
    sandbox_gateway: SandboxGateway, shop: AskingShop, case: str, reason: str
) -> None:
    with pytest.raises(SkipTest, match=f"not applicable: {reason}"):
        sandbox_gateway.certify(case, place_order=shop.place, state_of=shop.state)


@pytest.mark.parametrize(
    ("case", "changes", "problem"),
    [
        ("sucess", {}, "there is no case sucess; did you mean success"),
        (None, {"polls_every": "soon"}, "polls_every: must be a duration"),
    ],
)
def test_a_wrong_argument_is_named(
    sandbox_gateway: SandboxGateway,
    shop: AskingShop,
    case: str | None,
    changes: dict[str, str],
    problem: str,
) -> None:
    with pytest.raises(ValueError, match=problem):
        sandbox_gateway.certify(case, place_order=shop.place, state_of=shop.state, **changes)  # type: ignore[arg-type]


def test_a_gateway_that_settles_at_once_is_refused() -> None:
    """A good shop would fail eleven cases, because its orders are paid before it is looked at."""
    with SandboxGateway(settle_delay_ms=0) as gateway:
        shop = AskingShop(gateway)
        with pytest.raises(ValueError, match="must be from 1 to 2000 for certify, not 0: the"):
            gateway.certify("success", place_order=shop.place, state_of=shop.state)


def test_a_refund_that_pays_nothing_back_fails_its_case(
    sandbox_gateway: SandboxGateway, shop: AskingShop
) -> None:
    with pytest.raises(AssertionError, match="the customer gets the money back never, and must"):
        sandbox_gateway.certify(
            "refund_paid_out",
            place_order=shop.place,
            state_of=shop.state,
            refund_order=lambda number: None,
        )
