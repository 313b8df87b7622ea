"""A request of the journal as a curl command and as a test, to copy from its timeline.

The journal masks card numbers. Both send the test card that fits the masked number, or for any
other card one that the sandbox rejects.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sandbox_sim.operations import Operation
from sandbox_sim.overrides.faults import FAULT_RULE
from sandbox_sim.records.overrides import OVERRIDE_RULE
from sandbox_sim.values.cards import masked
from sandbox_sim.values.response_codes import Code
from sandbox_sim.web.pages import formats
from sandbox_sim.web.pages.listing import Record

_CARD_FIELD: Final = "customer_number"
_OTHER_CARD: Final = str(Operation.CARD.row.failing[_CARD_FIELD])
# The answer with one of these depends on headers, on other requests, or on a failure.
_NOT_REPEATED: Final = frozenset(
    {
        *(Code.NOT_AUTHENTICATED, Code.UNAUTHORIZED, Code.FORBIDDEN, Code.NOT_FOUND),
        *(Code.DUPLICATE, Code.TOO_MANY_REQUESTS, Code.SERVER_ERROR),
    }
)
# The expressions that replace the values of fields in a test.
_FIXTURE_VALUES: Final[Mapping[str, str]] = {
    "service_id": "sandbox_gateway.service_id",
    "callback_url": "sandbox_gateway.inbox_url()",
    "landing_page": 'sandbox_gateway.inbox_url("thanks")',
}


def as_curl(entry: Record, url: str, credentials: str, test_cards: Mapping[str, str]) -> str:
    """The command that sends the request again."""
    body = entry["request"]
    if isinstance(body, dict):
        body = _with_card(body, test_cards)
    return formats.curl(url, entry["path"], credentials, body)


def as_pytest(entry: Record, test_cards: Mapping[str, str]) -> str | None:
    """A test that sends the request to the fixture and gets the same code.

    None if the code depends on more than the fields of the request.
    """
    body, code = entry["request"], entry["code"]
    if not isinstance(body, dict) or entry["rule"] == FAULT_RULE or code in _NOT_REPEATED:
        return None
    return "\n".join(_test_lines(entry, _with_card(body, test_cards), test_cards)) + "\n"


def _with_card(body: Record, test_cards: Mapping[str, str]) -> dict[str, Any]:
    """The body with a card number in place of a masked one."""
    shown = body.get(_CARD_FIELD)
    if not isinstance(shown, str) or "*" not in shown:
        return dict(body)
    matching = (number for number in test_cards if masked(number) == shown)
    return {**body, _CARD_FIELD: next(matching, _OTHER_CARD)}


def _test_lines(entry: Record, body: Record, test_cards: Mapping[str, str]) -> Iterator[str]:
    replaced = {name: text for name, text in _FIXTURE_VALUES.items() if name in body}
    if str(body.get("service_id")).endswith("9"):
        del replaced["service_id"]  # such a service has low balances
    yield "import requests"
    card = body.get(_CARD_FIELD)
    if isinstance(card, str) and card in test_cards:
        replaced[_CARD_FIELD] = f"{test_cards[card]}_TEST_CARD"
        yield from ("", f"{replaced[_CARD_FIELD]} = {_literal(card)}")
    yield from ("", "", "def test_it(sandbox_gateway):")
    if entry["rule"] == OVERRIDE_RULE:
        yield f"    sandbox_gateway.override(response_code={_literal(entry['code'])})"
    elif entry["operation"] == Operation.STATUS and entry["code"] == Code.SUCCESS:
        path, payment = Operation.COLLECT.row.path, _payment_of(body)
        yield from _post_lines(path, payment, {**replaced, **_FIXTURE_VALUES})
    yield from _post_lines(entry["path"], body, replaced)
    yield f'    assert answer.json()["response_code"] == {_literal(entry["code"])}'


def _payment_of(query: Record) -> dict[str, Any]:
    """The payment that a status query asks about."""
    return Operation.COLLECT.sample(
        0, "", transaction_id=str(query["transaction_id"]), callback_url="",
        request_time="2026-01-01 09:00",
    )  # fmt: skip


def _post_lines(path: str, body: Record, replaced: Mapping[str, str]) -> Iterator[str]:
    yield "    body = {"
    for name, value in body.items():
        yield f"        {_literal(name)}: {replaced.get(name) or _literal(value)},"
    yield "    }"
    yield f"    url = sandbox_gateway.url + {_literal(path)}"
    yield "    answer = requests.post(url, json=body, auth=sandbox_gateway.auth, timeout=5)"


def _literal(value: object) -> str:
    """The value as a Python literal, with double quotes if the text contains no quotes."""
    text = repr(value)
    return f'"{text[1:-1]}"' if isinstance(value, str) and not set("'\"") & set(value) else text
