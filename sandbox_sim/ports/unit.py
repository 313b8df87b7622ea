"""One unit of work on the state: what it reads and writes of each kind of record.

Reset, snapshots and expiry leave records of mode P unchanged.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.attempts import Attempt, AttemptQuery, StoredDecision
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord
from sandbox_sim.records.exchanges import (
    Exchange,
    MessagePart,
    NotificationQuery,
    NotificationState,
    RawNotification,
    StoredNotification,
)
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.jobs import Job
from sandbox_sim.records.journal import JournalEntry
from sandbox_sim.records.ledger import (
    Account,
    Balance,
    LedgerLine,
    LedgerQuery,
    ManualEntry,
    Transfer,
)
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, Message
from sandbox_sim.records.overrides import UserRule
from sandbox_sim.records.snapshots import Snapshot
from sandbox_sim.records.transactions import CardPage, TransactionRecord
from sandbox_sim.values.clients import ServiceMode


class Topic(StrEnum):
    """What has changed. When it is announced, each server loads its copy from the store again.

    readers: a server has a reader of events, so the others send it theirs.
    """

    CLOCK = "clock"
    BEHAVIOUR = "behaviour"
    RULES = "rules"
    HELD_CALLBACKS = "held"
    READERS = "readers"


class Unit(Protocol):
    """One unit of work on the state: either all that it writes is saved, or nothing.

    Its methods are coroutines because a store may wait for its database. The work of `Store.run`
    must await nothing else. A unit reads what it has written itself.

    Locking. In memory and in SQLite one unit runs at a time. In Postgres units run concurrently; a
    method that locks says so. A lock covers one key, even if its record does not exist yet, and
    lasts until the unit ends: the next unit that locks the key waits, and then reads what this one
    wrote. What is read without a lock may change before the unit ends.

    Errors. Every method may raise `StoreError`, and then the unit must end. A method that raises
    anything else documents it.

    Order. "Newest first" and "oldest first" mean the order in which records were first added, by
    all servers; a later `save` does not move a record.
    """

    # The transactions of services, and the hosted pages of card payments.

    async def transaction(
        self, service_id: int, transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> TransactionRecord | None:
        """The newest transaction with this id of the client, or None.

        It may be expired for status queries (`answers_status`).
        """

    async def network_id_of(
        self, service_id: int, transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> str | None:
        """The `network_transaction_id` of what `transaction` finds, or None.

        In mode S this locks the service and the id, so two payments with one `transaction_id` run
        in turn. A store may first answer None, and run the work again if this was wrong.
        """

    async def transaction_by_network_id(
        self, service_id: int, network_transaction_id: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> TransactionRecord | None:
        """The transaction with this id of the gateway, or None. Locks the id.

        It is found even if a newer one has the same `transaction_id`.
        """

    async def add_transaction(self, transaction: TransactionRecord) -> bool:
        """Add a new transaction. From now on `transaction` finds it by its `transaction_id`.

        In mode P that id is unique: returns False, and adds nothing, if the service has used it. A
        unique key decides; if another unit is adding the same id, this waits for its end. In mode S
        read the id with `transaction` first if a second one matters; this does not lock.
        """

    async def save_transaction(self, transaction: TransactionRecord) -> None:
        """Replace a transaction that this unit read with `transaction_by_network_id`.

        That method has locked it.
        """

    async def refunds_of(self, collection: TransactionRecord) -> Sequence[TransactionRecord]:
        """The refunds of a collection, oldest first.

        Does not lock: a unit that adds one has locked the collection.
        """

    async def delete_transaction(self, transaction: TransactionRecord) -> None:
        """Delete a transaction: its `transaction_id` can be used again.

        The attempts of mode P are kept.
        """

    async def list_transactions(self, listing: Listing) -> Sequence[TransactionRecord]:
        """A page of the kept transactions, newest first; ids are `network_transaction_id`.

        Does not lock.
        """

    async def card_page(self, card_page_id: str) -> CardPage | None:
        """The hosted page with this id; None if it does not exist or expired. Locks the id."""

    async def add_card_page(self, page: CardPage) -> None:
        """Add a new page. Does not lock: its id is new."""

    # The SMS messages of services.

    async def add_messages(self, messages: Sequence[Message]) -> None:
        """Add one message, or all of a batch; at least one, all of one service and mode.

        Locks the messages of the service, so that their order has no gaps.
        """

    async def messages(
        self, service_id: int, subject: str, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> Sequence[Message]:
        """The message with this `processing_id`, or those of this `batch_id`, oldest first.

        Empty if there are none. Does not lock.
        """

    async def save_messages(self, messages: Sequence[Message]) -> None:
        """Replace messages that were added before. Does not lock."""

    async def list_messages(self, listing: Listing) -> Sequence[Message]:
        """A page of the messages, newest first; ids are `processing_id`. Does not lock."""

    async def history(self, query: HistoryQuery) -> tuple[Sequence[Message], int]:
        """A page of a service's messages, newest first, and how many match in all.

        Does not lock.
        """

    # Callbacks with their attempts, and the built-in inboxes that receive them.
    #
    # Only `add_inbox_message` may lock.

    async def callback(self, service_id: int | None, callback_id: str) -> CallbackRecord | None:
        """One callback with its attempts, of this service or of any (None); or None."""

    async def save_callback(
        self, callback: CallbackRecord, before: CallbackRecord | None = None
    ) -> bool:
        """Add a callback, or replace the one with its id.

        before: what it was when it was read. If it has another address or other attempts now, this
        does nothing and returns False.

        For each service, all unfinished callbacks and the newest `KEPT_CALLBACKS` finished ones are
        kept.
        """

    async def list_callbacks(self, listing: Listing) -> Sequence[CallbackRecord]:
        """A page of the callbacks, newest first."""

    async def services_with_held_callbacks(self) -> Sequence[int]:
        """The services with a callback that waits for a later one to overtake it, in any order."""

    async def release_callbacks(self, service_id: int, callback_id: str) -> Sequence[str]:
        """Release this callback, and those of its service that were added before it.

        Returns the ids of those that were held, oldest first. The caller adds their jobs.
        """

    async def add_inbox_message(self, name: str, message: InboxMessage) -> None:
        """Add a delivery to the inbox of this name; deletes the oldest messages beyond the limits.

        Locks all inboxes while it deletes messages because of their total size.
        """

    async def inbox_messages(self, name: str, listing: Listing) -> Sequence[InboxMessage]:
        """A page of an inbox, newest first; an inbox belongs to no service."""

    async def clear_inbox(self, name: str) -> int:
        """Empty an inbox; returns how many messages it had."""

    # Work that falls due later.
    #
    # A job is free, claimed or finished. Only a free job can be claimed, by one server at a time,
    # and only the server that has claimed it can finish it. A claim outlasts its unit of work. When
    # a server closes, or dies and its lease runs out, its claimed jobs are free again.

    async def add_job(self, job: Job) -> None:
        """Add a free job; the store numbers it. Does not lock.

        One exception: a job of a transaction in the answer gate, due almost at once, begins as
        claimed where several servers share the state. See `ports.callbacks`.
        """

    async def claim_due(self, now: datetime, limit: int) -> Sequence[Job]:
        """Claim the free jobs that are due at `now`, at most `limit`; returns them, earliest first.

        Jobs due at the same moment come in the order in which they were added. Jobs that another
        unit is claiming are skipped without waiting.
        """

    async def finish(self, job: Job) -> None:
        """Delete a job that this server has claimed.

        Raises `JobLost` if it is no longer claimed by this server: it was finished, a reset or a
        restore has deleted it, or the lease ran out and another server has it. Then the unit must
        end, so that it writes nothing.
        """

    async def bring_forward(self, callback_ids: Collection[str], now: datetime) -> Sequence[str]:
        """Make the next attempts at these callbacks due at `now` if they are due later.

        Returns the ids of the callbacks that have an unclaimed job for their delivery.
        """

    async def jobs_after(self, moment: datetime) -> Sequence[Job]:
        """The unclaimed jobs that are due later than this moment, earliest first."""

    async def next_jobs(self, limit: int) -> Sequence[Job]:
        """The unclaimed jobs that fall due next, earliest first, at most `limit`. Does not lock."""

    async def failed_jobs(self, limit: int) -> Sequence[Job]:
        """Jobs with `is_listed`, claimed or not, oldest first, at most `limit`. Does not lock."""

    async def next_due(self) -> datetime | None:
        """When the next free job falls due; None if there is none. Does not lock."""

    # The journal of requests. Entries without a service are kept like those of one service.

    async def add_entries(self, entries: Sequence[JournalEntry]) -> None:
        """Add entries, in this order.

        The newest `KEPT_REQUESTS` of each service and mode are kept; those without a mode count as
        mode S. Locks the journals of their services, so add them last in a unit, or alone.
        """

    async def list_entries(self, listing: Listing) -> Sequence[JournalEntry]:
        """A page of the journal, newest first. Does not lock."""

    async def clear_entries(self, service_id: int | None) -> int:
        """Empty the journal of a service, or of all (None), except for the entries of mode P.

        Returns how many it deleted. Locks the journals that it empties.
        """

    async def dropped_entries(self, service_id: int | None) -> int:
        """How many entries of a service, or of all (None), were dropped to keep newer ones.

        Does not lock.
        """

    # The ledger of both modes; snapshots and resets leave out mode P.

    async def read_one_moment(self) -> None:
        """Let this unit read only what is committed now, and nothing that is committed later.

        Call it first. A unit that calls it must not write.
        """

    async def balance(self, wallet: Account) -> Balance | None:
        """The exact balance of a wallet; None if it has no transfers yet.

        Locks the wallet, so the balance does not change until the unit ends.
        """

    async def add_transfer(self, transfer: Transfer, manual: ManualEntry | None = None) -> int:
        """Add a transfer, and change the balance of its wallet; returns its number.

        manual: who made it and why, if a person did. Locks the wallet. While a unit has locked a
        wallet, all lines of that wallet with lower numbers are committed.

        Raises, and changes nothing:
            Overdrawn: the balance would be below zero, and must not be.
            PendingEnded: the pending transfer that it names does not exist, or has ended.
            BadTransfer: more would be posted than was pending.
        """

    async def open_transfer(self, wallet: Account, subject: str) -> LedgerLine | None:
        """The pending transfer of a wallet that has not ended and has this subject.

        If there are several, the newest one. Does not lock.
        """

    async def ledger_page(self, query: LedgerQuery) -> Sequence[LedgerLine]:
        """The first `limit` lines that match the query, newest first. Does not lock.

        A line's number is above 0 and never changes. Numbers rise with each transfer over all
        services, regardless of `at`, and may have gaps. A store finds `after` by an index, so the
        cost of a page depends only on its size; only the filters by mode, account and reason may
        read every line. `suspense` is for mode P, and has an index too.
        """

    async def balances(
        self, mode: ServiceMode | None, service_id: int | None
    ) -> Mapping[Account, Balance]:
        """The balance of every wallet of a mode and a service; None: of all. Does not lock."""

    async def live_sums(self) -> Mapping[Account, Decimal]:
        """The credits less the debits of each account of the gateway in mode P. Does not lock.

        A store keeps a checkpoint of them, so that this does not add up every transfer.
        """

    # The attempts of transactions and messages of mode P at networks.
    #
    # An attempt and its transaction share one lock, that of `transaction_by_network_id`. A unit
    # that also adds transfers takes this lock first.

    async def add_attempt(self, attempt: Attempt, request: str) -> None:
        """Add a new attempt. request: the `SubmitRequest`, as JSON."""

    async def attempt(self, attempt_id: str) -> Attempt | None:
        """The attempt with this id. Locks its payment."""

    async def save_attempt(self, attempt: Attempt) -> None:
        """Replace an attempt that this unit read; a final one loses its saved request."""

    async def saved_request(self, attempt_id: str) -> str:
        """The request of an attempt, as it was added; empty once it is final. Does not lock."""

    async def find_attempts(
        self, network: str, *, reference: str = "", network_id: str = ""
    ) -> Sequence[str]:
        """The ids of at most two attempts with this reference or network id. Does not lock.

        Two mean that the reference is ambiguous: several services may use the same one.
        """

    async def attempts_of(self, network_transaction_id: str) -> Sequence[Attempt]:
        """The attempts of a payment, oldest first. Does not lock."""

    async def list_attempts(self, query: AttemptQuery) -> Sequence[Attempt]:
        """A page of attempts, newest first. Does not lock."""

    async def open_attempts(self) -> Mapping[str, int]:
        """How many attempts are open, for each network that has any."""

    async def doubtful_attempts(self, opened_before: datetime) -> Sequence[Attempt]:
        """The attempts that a person may have to decide about, oldest first. Does not lock.

        Attempts with a mismatch or a contradiction, and open ones that were made before this time,
        without those that a person has settled.
        """

    async def add_decision(self, decision: StoredDecision) -> None:
        """Add what a person decided; it is never changed."""

    async def decisions_of(self, attempt_id: str) -> Sequence[StoredDecision]:
        """What people decided about an attempt, oldest first. Does not lock."""

    # Raw notifications, scrubbed exchanges, and the parts of messages.
    #
    # Resets and snapshots leave them unchanged.

    async def add_raw_notification(self, raw: RawNotification) -> int:
        """Store a notification as it came; returns its number, above 0."""

    async def raw_notification(self, number: int) -> StoredNotification | None:
        """The notification with this number. Does not lock: its job has one owner."""

    async def save_raw_notification(self, kept: StoredNotification) -> None:
        """Replace a notification that this unit read."""

    async def list_notifications(self, query: NotificationQuery) -> Sequence[StoredNotification]:
        """A page of the notifications, newest first. Does not lock."""

    async def count_notifications(self) -> Mapping[tuple[str, NotificationState], int]:
        """How many notifications are kept, by network and state, without zeros."""

    async def notifications_with_secrets(
        self, unmatched_before: datetime, limit: int
    ) -> Sequence[StoredNotification]:
        """Notifications that are finished and not scrubbed yet. Does not lock.

        unmatched_before: one without an attempt is finished if it came before this time.
        """

    async def delete_notifications(self, before: datetime, limit: int) -> int:
        """Delete notifications that came before this time and have been read.

        Returns how many it deleted; `limit` at most.
        """

    async def add_exchanges(self, exchanges: Sequence[Exchange]) -> None:
        """Add requests to networks with their answers, scrubbed."""

    async def exchanges_of(self, attempt_id: str) -> Sequence[Exchange]:
        """The exchanges of an attempt, oldest first. Does not lock."""

    async def add_message_part(self, part: MessagePart) -> None:
        """Add a part that a network took; does nothing if the attempt already has this part."""

    async def save_message_part(self, part: MessagePart) -> None:
        """Replace a part that this unit read."""

    async def find_message_part(self, network: str, network_id: str) -> MessagePart | None:
        """The newest part to which a network gave this identifier, or None.

        Does not lock; `attempt` does.
        """

    async def message_parts(self, attempt_id: str) -> Sequence[MessagePart]:
        """The parts of a message that its network took, in the order of the text. Does not lock."""

    # What users and the server itself control: user rules, snapshots, ids, clock, behaviour.

    async def user_rules(self) -> Sequence[UserRule]:
        """All user rules, newest first. Does not lock."""

    async def user_rule(self, rule_id: str) -> UserRule | None:
        """One user rule, or None. Locks the id, so that uses are counted one by one."""

    async def save_user_rule(self, rule: UserRule) -> None:
        """Add a rule, or replace the one with its id.

        Does not lock: read the rule with `user_rule` first.
        """

    async def delete_user_rule(self, rule: UserRule) -> None:
        """Delete a rule; does nothing if it does not exist. Does not lock."""

    async def announce(self, topic: Topic) -> None:
        """Notify the watchers of the topic on every server, after this unit is committed.

        `Store.run` returns when they are done, or when another server does not answer in time.
        """

    async def reset(self, service_id: int | None) -> None:
        """Delete the records and jobs of a service; None: of all services, and the inboxes.

        Snapshots, clock, behaviour and the numbers of ids are kept. Locks everything: waits until
        no other unit runs, and others wait for this one. So call it first in a unit.
        """

    async def save_snapshot(self, name: str, service_id: int | None, now: datetime) -> Snapshot:
        """Save under this name all that `reset` would delete; replaces one of the same name.

        A claimed job is kept as a free one. Locks everything, as `reset` does.
        """

    async def restore_snapshot(self, name: str, now: datetime) -> Snapshot | None:
        """Reset, and restore a snapshot; None, and does nothing, if the snapshot does not exist.

        Every time in the records moves by the time since the snapshot. Restored jobs are free; a
        server that works on an earlier claim gets `JobLost`. Locks everything.
        """

    async def delete_snapshot(self, name: str) -> bool:
        """Delete a snapshot; returns whether it existed. Locks everything."""

    async def snapshots(self) -> Sequence[Snapshot]:
        """Every snapshot, newest first. Does not lock."""

    async def reserve(self, first: int, count: int) -> int:
        """Reserve `count` consecutive numbers for ids; returns the first of them.

        That is `first` in a new store. No number is reserved twice, not even after a reset. Locks
        the counter.
        """

    async def clock(self) -> ClockState | None:
        """The saved state of the clock; None if it was never set. Does not lock."""

    async def save_clock(self, state: ClockState) -> None:
        """Save the state of the clock, for other servers and the next start. Locks the clock."""

    async def behaviour(self) -> Behaviour | None:
        """The changed behaviour; None while it is as configured. Locks it."""

    async def save_behaviour(self, behaviour: Behaviour | None) -> None:
        """Save a changed behaviour; None undoes changes. Call `behaviour` first, which locks it."""

    async def restored(self) -> bool:
        """Whether the state was restored from a backup since this was last called. Locks this."""
        ...
