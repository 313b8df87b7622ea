"""The doors to the outside: time, identifiers, state, and the network that callbacks go over."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from sandbox_sim.domain.callbacks import Answer, Callback
from sandbox_sim.domain.checkout import Checkout
from sandbox_sim.domain.clock import ClockState
from sandbox_sim.domain.events import Event
from sandbox_sim.domain.inbox import InboxMessage
from sandbox_sim.domain.jobs import Job
from sandbox_sim.domain.journal import Entry
from sandbox_sim.domain.ledger import (
    Account,
    Audit,
    Balance,
    LedgerLine,
    LedgerQuery,
    Posting,
)
from sandbox_sim.domain.listing import Listing
from sandbox_sim.domain.rules import Rule
from sandbox_sim.domain.sms import HistoryQuery, Message
from sandbox_sim.domain.snapshots import Snapshot
from sandbox_sim.domain.transactions import Transaction

T = TypeVar("T")


class Clock(Protocol):
    """Two times: the gateway's, which can be moved and frozen, and the real one, which goes on."""

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Real time in seconds, for durations only."""
        ...

    @property
    def state(self) -> ClockState:
        """How it is set."""
        ...

    def set_to(self, state: ClockState) -> None:
        """Take over how another clock is set; whoever waits looks again."""
        ...

    def move_to(self, moment: datetime) -> None:
        """Make `now()` this moment; whoever waits for an earlier one wakes."""
        ...

    def freeze(self) -> None:
        """Let gateway time stand still; real time goes on."""
        ...

    def resume(self) -> None:
        """Let gateway time go on from where it stands."""
        ...

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Return when `wake` is set or so much real time has passed."""
        ...

    async def pause(self, seconds: float) -> None:
        """Let real time pass."""
        ...

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Return when `wake` is set, when gateway time has reached `until`, or to look again."""
        ...


class Ids(Protocol):
    """Identifiers; each call gives one that was not given before. And chance."""

    first: int  # the number to begin with on a state that none were reserved on

    def take(self, numbers: range, low: Callable[[], None]) -> None:
        """Make every id of these numbers from now on; call `low` when half of them are given."""
        ...

    def network_transaction_id(self) -> str:
        """Eleven digits (D18)."""
        ...

    def message_id(self) -> str:
        """For `processing_id` and `batch_id`."""
        ...

    def request_id(self) -> str:
        """For `X-Sandbox-Request-Id`."""
        ...

    def token(self) -> str:
        """Unguessable, for addresses that are their own key."""
        ...

    def draw(self) -> float:
        """A random number, at least 0 and below 1."""
        ...


class Topic(StrEnum):
    """What every server of a gateway has to hear of at once."""

    CLOCK = "clock"
    RULES = "rules"
    HELD = "held"


class Unit(Protocol):
    """One unit of work on the state: all of it happens, or none.

    Its methods are coroutines so that a store may wait for its database; work handed to
    `Store.run` awaits nothing but them. What was written in a unit is read back in it.
    """

    async def transaction(self, service_id: int, transaction_id: str) -> Transaction | None:
        """The newest transaction of this id that has not expired."""
        ...

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str
    ) -> Transaction | None:
        """Exactly this transaction, even if another took over its id, or it ends late by itself."""
        ...

    async def add_transaction(self, transaction: Transaction) -> None:
        """Save a new one; from now on its `transaction_id` names it."""
        ...

    async def save_transaction(self, transaction: Transaction) -> None:
        """Replace one that was added before."""
        ...

    async def checkout(self, checkout_id: str) -> Checkout | None:
        """The hosted page of this id, until it expires."""
        ...

    async def add_checkout(self, checkout: Checkout) -> None:
        """Save a new one."""
        ...

    async def callback(self, service_id: int | None, callback_id: str) -> Callback | None:
        """One callback with its attempts, of this service or of any."""
        ...

    async def save_callback(self, callback: Callback) -> None:
        """Add or replace."""
        ...

    async def services_held(self) -> Sequence[int]:
        """The services that have callbacks which are held back."""
        ...

    async def let_go(self, service_id: int, callback_id: str) -> Sequence[str]:
        """Hold back neither this callback nor those that came before it; which ones were held."""
        ...

    async def list_transactions(self, listing: Listing) -> Sequence[Transaction]:
        """Transactions that are kept, newest first; ids are `network_transaction_id`."""
        ...

    async def list_callbacks(self, listing: Listing) -> Sequence[Callback]:
        """Callbacks, newest first."""
        ...

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        """Messages, newest first; ids are `processing_id`."""
        ...

    async def add_entries(self, entries: Sequence[Entry]) -> None:
        """Write into the journal; of each service the newest `KEPT_REQUESTS` are kept."""
        ...

    async def list_entries(self, listing: Listing) -> Sequence[Entry]:
        """Entries of the journal, newest first."""
        ...

    async def clear_entries(self, service_id: int | None) -> int:
        """Empty the journal of a service, or of all; how many entries it had."""
        ...

    async def dropped_entries(self, service_id: int | None) -> int:
        """How many older entries, of a service or of all, had to make room."""
        ...

    async def add_job(self, job: Job) -> None:
        """Save a job; the store numbers it."""
        ...

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        """The jobs due at `now`, oldest first; nobody else gets them until they are finished."""
        ...

    async def finish(self, job: Job) -> None:
        """A claimed job is done; `JobLost` where it is ours no more."""
        ...

    async def next_due(self) -> datetime | None:
        """When the next unclaimed job falls due."""
        ...

    async def balance(self, service_id: int, account: Account) -> Balance | None:
        """The sum of the account's postings, to the last digit; None before the first."""
        ...

    async def post(self, posting: Posting) -> None:
        """Move an account; the store numbers the posting, for `ledger_page`."""
        ...

    async def postings(self, service_id: int) -> Sequence[Posting]:
        """Every posting of a service, oldest first."""
        ...

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        """The first `limit` lines that the query admits, newest first.

        Numbers rise from posting to posting over all services, whatever `at` says, and may leave
        gaps; they are above 0 and never change. A store seeks the number in `after` and does not
        count its way there, so that any page of a service, or of all, costs what is on it; only
        the other filters may make it look at every line.
        """
        ...

    async def audit(self, service_id: int | None) -> Sequence[Audit]:
        """Each account of a service, or of all (None), as its balance and its postings have it.

        In any order: every account that has a balance or a posting; what it does not have counts
        as 0. Both figures are of the same moment. The sum is added up from the postings, to the
        last digit, so this reads all of them: nothing that a page or a payment should wait for.
        """
        ...

    async def add_messages(self, messages: Sequence[Message]) -> None:
        """Save a send: one message, or all of a batch."""
        ...

    async def messages(self, service_id: int, subject: str) -> Sequence[Message]:
        """The message with this `processing_id`, or those of this `batch_id`."""
        ...

    async def save_messages(self, messages: Sequence[Message]) -> None:
        """Replace messages that were added before."""
        ...

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        """One page, newest first, and how many messages the filters admit in all."""
        ...

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        """A delivery came in."""
        ...

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        """A stretch of what lies in an inbox, which is of no service, newest first."""
        ...

    async def clear_inbox(self, name: str) -> int:
        """Empty an inbox; how many messages it had."""
        ...

    async def rules(self) -> Sequence[Rule]:
        """All rules, the newest first."""
        ...

    async def rule(self, rule_id: str) -> Rule | None:
        """One rule; until this unit is done nobody else reads it by this."""
        ...

    async def save_rule(self, rule: Rule) -> None:
        """Add or replace."""
        ...

    async def delete_rule(self, rule: Rule) -> None:
        """Take it out."""
        ...

    async def announce(self, topic: Topic) -> None:
        """Have whoever watches the topic told when this unit is committed."""
        ...

    async def reset(self, service_id: int | None) -> None:
        """Forget all that was ever done for a service, its jobs too; or for all, inboxes too.

        Where several servers share the state they wait here until no other unit is at work, so it
        comes first in its unit; and so do those that change snapshots.
        """
        ...

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        """Keep all that `reset` would forget, instead of what was kept under this name before.

        A job that is claimed is kept as one to be done.
        """
        ...

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        """Forget what `reset` would, and have what was kept in its place; None if there is none.

        Every time in it is later by what has gone by since. Nobody has claimed its jobs: whoever
        works on them still finds that they are lost.
        """
        ...

    async def delete_snapshot(self, name: str) -> bool:
        """Keep it no longer; whether there was one."""
        ...

    async def snapshots(self) -> Sequence[Snapshot]:
        """Every snapshot, the one that was saved last first; `reset` forgets none."""
        ...

    async def reserve(self, first: int, count: int) -> int:
        """The first of so many numbers in a row that nobody gets again, even after a reset.

        It is `first` where none were reserved before.
        """
        ...

    async def clock(self) -> ClockState | None:
        """How the clock was set last; None if it never was."""
        ...

    async def save_clock(self, state: ClockState) -> None:
        """Keep it for the next start."""
        ...


# Real time between two tries of whoever has to wait for a store that is away.
STORE_PAUSE_S: Final = 1.0


class StoreError(Exception):
    """The state cannot be opened, read or saved; the text says why. Nothing was half done."""


class JobLost(Exception):
    """A claimed job is ours no more: done already, forgotten, or another server's by now."""


class Store(Protocol):
    """The state, behind atomic units of work."""

    async def open(self) -> None:
        """Make it ready, or raise `StoreError`."""
        ...

    async def close(self) -> None:
        """Finish what was asked for and let go of it."""
        ...

    async def run(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Do `work` atomically; returns when what it wrote is as safe as the store makes it."""
        ...

    def watch(self, notice: Callable[[], None]) -> Callable[[], None]:
        """Call `notice` whenever a unit has written something, until what is returned is called."""
        ...

    def watch_jobs(self, notice: Callable[[datetime], None]) -> None:
        """Call `notice` with its due time whenever a job was added."""
        ...

    def watch_topic(self, topic: Topic, notice: Callable[[], Awaitable[None]]) -> None:
        """Call `notice` when the topic was announced, on every server, before `run` returns."""
        ...


class Relay(Protocol):
    """How servers that share a store tell one another what happened, for the live feed."""

    @property
    def wanted(self) -> bool:
        """Whether another server has readers."""
        ...

    def tell(self, events: Sequence[Event]) -> None:
        """Let the others hear of what happened here; never waits."""
        ...

    def listen(self, heard: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Call `heard` with what happens elsewhere, until what is returned is called."""
        ...


class CallbackSender(Protocol):
    """How a callback leaves the house."""

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> Answer:
        """One POST. Whatever goes wrong comes back as an answer that says so; nothing raises.

        on_status: called as soon as the receiver's HTTP status is there.
        """
        ...
