"""Certify within a test run: the application is reached by functions of the test."""

import unittest
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sandbox_sim.certify import reports
from sandbox_sim.certify.application import (
    ApplicationTime,
    ApplicationUnreachable,
    OrderRefused,
    OrderUnreadable,
    RealTime,
)
from sandbox_sim.certify.bench import CertifyBench
from sandbox_sim.certify.cases import STATES, CertifyCase, PlacedOrder, State, load, select
from sandbox_sim.certify.configuration import CertifyTerms
from sandbox_sim.certify.files import FileError, parse
from sandbox_sim.certify.runner import run
from sandbox_sim.certify.verdicts import CaseVerdict, Result

if TYPE_CHECKING:
    from sandbox_sim.testing import SandboxGateway


class CertifyOrder(NamedTuple):
    """The argument of `place_order`. pay_by: mobile_money or card."""

    phone: str
    network: str
    amount: str
    pay_by: str
    reference: str


class ApplicationFunctions(NamedTuple):
    """The application under test, by functions of the test.

    place_order: returns the number of the order, or None if the application refused it.
    state_of: returns the state of the order with this number. refund_order, restart_application,
    receipts_of: None if the application cannot do it; receipts_of="sms" counts the SMS of the
    gateway. words: the state that each word of the application means. cards: whether it accepts
    cards.
    """

    place_order: Callable[[CertifyOrder], object]
    state_of: Callable[[str], str]
    refund_order: Callable[[str], object] | None = None
    restart_application: Callable[[], object] | None = None
    receipts_of: Callable[[str], int] | Literal["sms"] | None = None
    words: Mapping[str, State] = MappingProxyType({})
    cards: bool = False
    time: ApplicationTime = RealTime()

    def why_not_applicable(self, case: CertifyCase) -> str | None:
        """Why a case cannot be run with it; None if it can."""
        missing = {
            'receipts_of="sms"': case.sms and self.receipts_of != "sms",
            "restart_application": case.restarts("application") and not self.restart_application,
            "cards=True": case.is_about_cards and not self.cards,
            "refund_order": "refund" in case.verbs and not self.refund_order,
        }
        first = next((argument for argument, is_missing in missing.items() if is_missing), None)
        return first and f"certify(…) was called without {first}"

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        """Place an order. within: ignored; `place_order` has to return by itself."""
        wanted = CertifyOrder(order.phone, order.network, order.amount, order.pay_by, reference)
        number = _call("place_order", self.place_order, wanted)
        if number is None:
            raise OrderRefused
        return str(number)

    def refund(self, order: str, within: timedelta) -> None:
        """Refund a paid order."""
        if self.refund_order is not None:
            _call("refund_order", self.refund_order, order)

    def state(self, order: str) -> State:
        """The state of an order."""
        word = _call("state_of", self.state_of, order)
        state: State | None = self.words.get(word, word if word in STATES else None)
        if state is None:
            raise ApplicationUnreachable(
                f"state_of returned {word!r}; say with words={{{word!r}: …}} which state it is: "
                f"{', '.join(STATES)}"
            )
        return state

    def receipts(self, order: str) -> int | None:
        """How many receipts it sent; None if the SMS of the gateway are counted."""
        if self.receipts_of is None or self.receipts_of == "sms":
            return None
        return int(_call("receipts_of", self.receipts_of, order))

    def restart(self) -> None:
        """Restart the application."""
        if self.restart_application is not None:
            _call("restart_application", self.restart_application)


def _call(name: str, function: Callable[..., Any], *values: object) -> Any:
    try:
        return function(*values)
    except Exception as error:
        raise OrderUnreadable(f"{name} raised {error!r}") from error


def certify(
    gateway: "SandboxGateway",
    application: ApplicationFunctions,
    case: str | None,
    folders: Sequence[Path],
    times: Mapping[str, str],
) -> None:
    """Run the controls and one case, or all. Raises as `SandboxGateway.certify` says."""
    __tracebackhide__ = True
    try:
        cases = select(load(folders), [] if case is None else [case])
        receipts = None if application.receipts_of is None else "sms"
        checked = parse({"application": {**times, "receipts": receipts}}, CertifyTerms, "certify")
        bench = CertifyBench(checked, gateway, gateway.url)
    except FileError as error:
        raise ValueError(str(error)) from None
    results = run(bench, application, cases).results
    if case is not None and results[-1].verdict is CaseVerdict.NOT_APPLICABLE:
        raise unittest.SkipTest(f"not applicable: {results[-1].reason}")
    if bad := [each for each in results if not each.is_good]:
        raise AssertionError("\n".join(_describe(each) for each in bad))


def _describe(result: Result) -> str:
    """The result, how to fix the application, and the events."""
    shown = reports.result_document(result, ())
    return "\n".join((*reports.lines(shown, remedies=True), *reports.timeline(shown)))
