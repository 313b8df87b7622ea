"""A case: a TOML file with the events of an order, what must hold, why, and how to fix a failure.

The steps run in order. Each one either does something (`order`, `card`, `refund`, `override`,
`fault`, `advance`, `post`, `replay`, `restart`, `wait_polls`) or states what must hold (`becomes`,
`stays`, `charges`, `refunds`, `receipts`, `agrees`, `waits`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from sandbox_sim.certify.files import Duration, FileError, Table, read
from sandbox_sim.values.redaction import suggestion

State = Literal["paid", "failed", "pending", "cancelled"]
STATES: Final[tuple[State, ...]] = get_args(State)
# The fields of a payment that a forged callback may change.
ChangeableField = Literal["amount", "transaction_id"]
BUILT_IN: Final = Path(__file__).parent / "cases"
PAYER: Final = "0244000001"
_ORDER_VERBS: Final = frozenset(
    {*("card", "refund", "becomes", "stays", "charges", "refunds", "receipts", "agrees"), "waits"}
)


class PlacedOrder(Table):
    """An order for the application to place. name: the name that other steps use."""

    name: str = "order"
    phone: str = Field(PAYER, pattern=r"^0\d{9}$")
    network: str = "MTN"
    amount: str = Field("10.00", pattern=r"^\d+(\.\d\d?)?$")
    pay_by: Literal["mobile_money", "card"] = "mobile_money"


class PostedCallback(Table):
    """A callback that certify itself posts to the callback_url of a payment.

    signature: `wrong` is made with another key, `unchanged` is that of the body without the
    changes. changes: fields of the payment that are replaced in the body.
    """

    of: str = "order"
    status: Literal["000", "001", "002", "003"] = "000"
    signature: Literal["right", "none", "wrong", "unchanged"] = "right"
    changes: dict[ChangeableField, str] = Field({})


class CaseStep(Table):
    """One step: a table with one verb. of: the order that it is about.

    card: what the customer does on the card page; `return` goes to the landing page of the order
    without a choice.
    """

    of: str = "order"
    order: PlacedOrder | None = None
    card: Literal["open", "pay", "fail", "cancel", "return"] | None = None
    refund: Literal[True] | None = None
    override: dict[str, Any] | None = None
    fault: dict[str, Any] | None = None
    end_faults: Literal[True] | None = None
    advance: Duration | None = None
    post: PostedCallback | None = None
    replay: str | None = None
    restart: Literal["gateway", "application"] | None = None
    wait_polls: int | None = Field(None, ge=1, le=20)
    becomes: tuple[State, ...] | None = None
    stays: tuple[State, ...] | None = None
    charges: int | None = Field(None, ge=0)
    refunds: int | None = Field(None, ge=0)
    receipts: int | None = Field(None, ge=0)
    agrees: Literal[True] | None = None
    waits: Duration | None = None

    @field_validator("becomes", "stays", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_verb(self) -> Self:
        verbs = self.model_fields_set - {"of"}
        if len(verbs) != 1:
            found = " and ".join(sorted(verbs)) or "nothing"
            raise ValueError(f"must have exactly one verb, and has {found}")
        if "of" in self.model_fields_set and not verbs & _ORDER_VERBS:
            raise ValueError(f"of goes with {', '.join(sorted(_ORDER_VERBS))} only")
        return self

    @property
    def verb(self) -> str:
        """The one field that is set."""
        (verb,) = self.model_fields_set - {"of"}
        return verb

    @property
    def prior_order(self) -> str | None:
        """The order that must have been placed before; None if the step needs no order."""
        if self.post is not None:
            return self.post.of
        return self.replay or (self.of if self.verb in _ORDER_VERBS else None)


class CertifyCase(Table):
    """A case. name: the name of its file. control: if it fails, all other cases are inconclusive.

    sms: it applies only to applications that send receipts as SMS through the gateway.
    """

    name: str = ""
    title: str = Field(min_length=1)
    group: str = "mobile money"
    control: bool = False
    sms: bool = False
    good: str = Field(min_length=1)
    why: str = Field(min_length=1)
    mend: str = Field(min_length=1)
    steps: tuple[CaseStep, ...]

    @model_validator(mode="after")
    def _check_orders(self) -> Self:
        if not self.steps:
            raise ValueError("steps: must have at least one step")
        orders: list[PlacedOrder] = []
        for number, step in enumerate(self.steps):
            if step.order is not None:
                orders.append(step.order)
            elif step.prior_order not in {None, *(each.name for each in orders)}:
                raise ValueError(f"steps.{number}: no order {step.prior_order!r} was placed before")
        for what in ("name", "phone"):
            if len({getattr(each, what) for each in orders}) < len(orders):
                raise ValueError(f"steps: each order needs a {what} of its own")
        by_card = [each.name for each in orders if each.pay_by == "card"]
        if len(by_card) > 1:
            raise ValueError("steps: at most one order can be paid by card")
        for number, step in enumerate(self.steps):
            if step.card is not None and step.of not in by_card:
                raise ValueError(f'steps.{number}: card goes with an order whose pay_by is "card"')
        return self

    @property
    def orders(self) -> Sequence[PlacedOrder]:
        """The orders that are placed."""
        return [step.order for step in self.steps if step.order is not None]

    @property
    def is_about_cards(self) -> bool:
        """Whether an order is paid by card."""
        return any(order.pay_by == "card" for order in self.orders)

    def restarts(self, what: Literal["gateway", "application"]) -> bool:
        """Whether one of its steps restarts this."""
        return any(step.restart == what for step in self.steps)

    @property
    def verbs(self) -> frozenset[str]:
        """The verbs of all steps."""
        return frozenset(step.verb for step in self.steps)


def load(folders: Sequence[Path] = ()) -> Sequence[CertifyCase]:
    """Our cases and those of these folders, controls first. Raises `FileError`.

    A case of a folder replaces ours of the same name.
    """
    found: dict[str, CertifyCase] = {}
    problems: list[str] = []
    for folder in (BUILT_IN, *folders):
        files = sorted(folder.glob("*.toml"))
        if not files:
            problems.append(f"{folder}: has no case, a file that ends in .toml")
        for file in files:
            try:
                case = read(file, CertifyCase)
            except FileError as error:
                problems.append(str(error))
                continue
            found[file.stem] = case.model_copy(update={"name": file.stem})
    if problems:
        raise FileError("\n".join(problems))
    return sorted(found.values(), key=lambda case: not case.control)


def select(cases: Sequence[CertifyCase], names: Sequence[str]) -> Sequence[CertifyCase]:
    """The controls and the cases with these names; without names, all cases.

    Raises `FileError` for a name that no case has.
    """
    check_names(names, cases, "")
    return [case for case in cases if case.control or not names or case.name in names]


def check_names(names: Iterable[str], cases: Sequence[CertifyCase], place: str) -> None:
    """Raise `FileError` for a name that no case has. place: the beginning of its message."""
    known = [case.name for case in cases]
    for name in names:
        if name not in known:
            raise FileError(f"{place}there is no case {name}; {suggestion(name, known)}")
