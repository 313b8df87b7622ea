"""What was seen from outside in a run of production. Data only."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from chaos.facts import ACCEPTED, FAULT, Facts

DUPLICATE = "219"
REFUSALS = frozenset({"015", "019", "400", "402"})
PENDING, SUCCEEDED, FAILED = "002", "000", "001"


@dataclass(slots=True)
class Purchase:
    """A payment with a unique `transaction_id`, and the codes of all its requests, in order.

    operation: collect, deposit or payout; or refund, which an operator asks for.
    codes: None is a request whose connection broke before the answer.
    status: at our gateway at the end; None if it was not found.
    settled: whether a person decided it, because it was listed as one that waits for a person. So
    does one whose repeat the network refused after a kill, as that says nothing for certain about
    the first request, and one that the network forgot.
    decided: the status that an operator who acts at random gave it. refund_of: of a refund, the
    `transaction_id` of the collection.
    """

    service_id: int
    transaction_id: str
    operation: str
    amount: Decimal
    codes: list[str | None] = field(default_factory=list)
    status: str | None = None
    settled: bool = False
    decided: str | None = None
    refund_of: str = ""

    @property
    def accepted(self) -> bool:
        """Whether an answer says that our gateway has the payment.

        A 219 does not: a refusal of the network may have come after it.
        """
        return not ACCEPTED.isdisjoint(self.codes)


@dataclass(slots=True)
class Charges:
    """What the network did with one `transaction_id`.

    codes: of all submits that arrived. status: in the end; None where it has no record. One that it
    declined with 015 has a record too.
    """

    codes: list[str] = field(default_factory=list)
    status: str | None = None

    @property
    def times(self) -> int:
        """How often it was charged."""
        return sum(code in ACCEPTED for code in self.codes)

    @property
    def repeats(self) -> int:
        """How many submits it knew already."""
        return self.codes.count(DUPLICATE)


@dataclass(slots=True)
class Act:
    """One request of an operator that enters something, under a name that no other one has.

    code: the HTTP status of the answer; None where none came, or none that tells the outcome.
    noted: whether an answer 200 says that nothing was entered, as the network had decided.
    found: after a lost answer, whether the operator then found the act in the books.
    """

    name: str
    kind: str
    code: int | None = None
    noted: bool = False
    found: bool = False


class Entry(NamedTuple):
    """What the books have of one act of a person: an entry, a decision or a refund.

    why: the name of the act. wallet, amount: of an entry, what it adds to which wallet.
    service_id, transaction_id: of a decision or a refund. status: of a decision.
    """

    by: str
    why: str
    service_id: int = 0
    transaction_id: str = ""
    status: str = ""
    wallet: str = ""
    amount: Decimal = Decimal(0)


@dataclass(slots=True)
class Books:
    """The double-entry books of our gateway.

    assets: the sum of all balances of each asset. wrong: wallets whose balance is not the sum of
    their transfers. open_holds: subjects of pending transfers of this run that have not ended.
    held: what is pending, by service. available: what a service may spend, by service and wallet.
    entries: of people. suspended, collected, asked, moved: by `transaction_id`, what contradictions
    moved into suspense, what a collection brought, the amount of the request, and of a success.
    doubted: payments whose network told another amount than a person. in_suspense: what stands
    there for these payments.
    """

    assets: dict[str, Decimal] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    open_holds: list[str] = field(default_factory=list)
    held: dict[int, Decimal] = field(default_factory=dict)
    available: dict[tuple[int, str], Decimal] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    suspended: dict[str, Decimal] = field(default_factory=dict)
    collected: dict[str, Decimal] = field(default_factory=dict)
    asked: dict[str, Decimal] = field(default_factory=dict)
    moved: dict[str, Decimal] = field(default_factory=dict)
    doubted: set[str] = field(default_factory=set)
    in_suspense: Decimal = Decimal(0)


class BadAnswers(NamedTuple):
    """What the network did not answer as it should.

    failed: how many calls got an HTTP 5xx. submits, questions: how many were never answered.
    """

    failed: int = 0
    submits: int = 0
    questions: int = 0


class Renewal(NamedTuple):
    """The renewal of tokens that ended while payments were on their way.

    waiting: payments that waited for a new one. given: new tokens of each product, to all servers
    together.
    """

    waiting: int
    servers: int
    given: Mapping[str, int]


@dataclass(slots=True)
class Observations:
    """Everything that was seen.

    facts: callbacks and complaints. between: payments whose server was killed after the
    network had them and before it had answered. raced: payments that were sent to two servers at
    once. unanswered: payments whose submit the network never answered. forgotten: those of them
    that it forgot while our gateway did not know how they ended. database_away: whether the
    database was restarted. notified: how many callbacks of the network came in a way, and were
    answered with an HTTP status. acts: of the operators. reads: how often they read the books.
    remarks: what they read that cannot be. unknown_there: of the payments that they settled, those
    of which the network says nothing when it is asked in the end.
    """

    facts: Facts = field(default_factory=Facts)
    purchases: list[Purchase] = field(default_factory=list)
    charges: dict[tuple[int, str], Charges] = field(default_factory=dict)
    books: Books = field(default_factory=Books)
    between: list[Purchase] = field(default_factory=list)
    raced: int = 0
    unanswered: list[Purchase] = field(default_factory=list)
    forgotten: list[Purchase] = field(default_factory=list)
    bad_answers: BadAnswers = field(default_factory=BadAnswers)
    database_away: bool = False
    renewals: list[Renewal] = field(default_factory=list)
    notified: Counter[tuple[str, int]] = field(default_factory=Counter)
    acts: list[Act] = field(default_factory=list)
    reads: int = 0
    remarks: list[str] = field(default_factory=list)
    unknown_there: set[str] = field(default_factory=set)

    def note_decisions(self) -> None:
        """Complete the payments: what operators decided, and what refunds amount to."""
        first: dict[str, Entry] = {}
        for each in self.books.entries:
            if each.status:
                first.setdefault(each.transaction_id, each)
        acts = {each.name for each in self.acts}
        for purchase in self.purchases:
            entry = first.get(purchase.transaction_id)
            if entry is not None and entry.why in acts:
                purchase.decided = entry.status
            if purchase.refund_of:
                purchase.amount = self.books.asked.get(purchase.transaction_id, purchase.amount)

    def is_refused(self, purchase: Purchase) -> bool:
        """Whether the answers say that our gateway does not have a payment.

        A fault says so, unless the database was away: then its commit may have succeeded.
        """
        codes = {None, FAULT} if self.database_away else {None}
        return not purchase.accepted and codes.isdisjoint(purchase.codes)

    def charges_of(self, purchase: Purchase) -> Charges:
        """What the network did with a payment."""
        return self.charges.get((purchase.service_id, purchase.transaction_id), Charges())
