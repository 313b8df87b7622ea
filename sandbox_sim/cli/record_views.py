"""The four kinds of record: the filters that are options, and the columns of their tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sandbox_sim.cli import tables
from sandbox_sim.cli.matching import Filter
from sandbox_sim.domain.payments.transactions import STATUS_WORDS

_WORD_OF: Final = {code.value: word for word, code in STATUS_WORDS.items()}

Shown = Mapping[str, Any]


class Kind(NamedTuple):
    """One kind; `plural` is its name in paths and answers, `words` its name in messages.

    columns: for each heading a function that returns the cell of a record.
    optional: the headings of columns that are left out where every cell is None.
    of_lists: further filters of `list`.
    """

    plural: str
    words: str
    filters: Sequence[Filter]
    columns: Mapping[str, Callable[[Shown], object]]
    optional: Mapping[str, Callable[[Shown], object]] = MappingProxyType({})
    of_lists: Sequence[Filter] = ()

    def lines(self, records: Sequence[Shown]) -> Iterator[str]:
        """The records as a table, or the line that there are none."""
        if not records:
            yield f"no {self.words}"
            return
        used = {
            heading: cell
            for heading, cell in self.optional.items()
            if any(cell(record) is not None for record in records)
        }
        columns = {**self.columns, **used}
        rows = [[cell(record) for cell in columns.values()] for record in records]
        yield from tables.table(list(columns), rows)


def status_in_words(code: str) -> str:
    """`000 successful`."""
    return f"{code} {_WORD_OF[code]}" if code in _WORD_OF else code


def last_verdict(callback: Shown) -> str | None:
    """The verdict on the last attempt; None if there was no attempt."""
    return callback["attempts"][-1]["verdict"] if callback["attempts"] else None


def _field(name: str) -> Callable[[Shown], object]:
    return lambda record: record[name]


def _fields(*headings: str) -> dict[str, Callable[[Shown], object]]:
    """Columns from `heading=field`, or from the field alone if it is also the heading."""
    pairs = (text.partition("=") for text in headings)
    return {heading: _field(name or heading) for heading, _, name in pairs}


_SERVICE: Final = Filter("service_id", "records of this service", ("--service-id",))
_TRANSACTION: Final = Filter("transaction_id", "records of this transaction", ("--transaction-id",))
_MODE: Final = Filter("mode", "records of this mode, S or P", ("--mode",))
_OPERATION: Final = Filter("operation", "records of this operation", ("--operation",))

REQUESTS: Final = Kind(
    "requests",
    "requests",
    (
        _SERVICE,
        _TRANSACTION,
        _OPERATION,
        Filter(
            "response_code",
            "requests answered with this response code",
            ("--response-code", "--code"),
        ),
        Filter("http_status", "requests answered with this HTTP status", ("--status",)),
        Filter("mode", "requests of this mode: S, P or null", ("--mode",)),
    ),
    {
        **_fields("time=at", "id", "service=service_id", "mode", "path"),
        **_fields("transaction=transaction_id", "http=http_status", "code=response_code", "rule"),
        **_fields("why"),
    },
)
TRANSACTIONS: Final = Kind(
    "transactions",
    "transactions",
    (
        _SERVICE,
        _TRANSACTION,
        _OPERATION,
        Filter(
            "status",
            "transactions of this status: 000, 001, 002, 003, or its word, such as failed",
            ("--status",),
        ),
        _MODE,
    ),
    {
        "time": lambda record: record["timeline"][0]["at"],
        **_fields("service=service_id", "transaction=transaction_id", "operation"),
        "amount": lambda record: f"{record['amount']} {record['currency_code']}",
        **_fields("nw", "party"),
        "status": lambda record: status_in_words(record["status"]),
    },
    {
        "mode": lambda record: "P" if record["mode"] == "P" else None,
        "waits because": lambda record: "; ".join(record.get("waiting", ())) or None,
    },
    (
        Filter(
            "waiting",
            "transactions of mode P that wait for a person, with the reason",
            ("--waiting",),
            switch=True,
        ),
    ),
)
CALLBACKS: Final = Kind(
    "callbacks",
    "callbacks",
    (
        _SERVICE,
        _TRANSACTION,
        Filter(
            "state",
            "callbacks in this state: pending, retrying, delivered, failed or dropped",
            ("--status", "--state"),
        ),
        Filter(
            "unacknowledged",
            "callbacks that were tried and not acknowledged: retrying or failed",
            ("--unacknowledged",),
            switch=True,
        ),
        _MODE,
    ),
    {
        **_fields("time=created_at", "id", "service=service_id", "transaction=transaction_id"),
        **_fields("state"),
        "attempts": lambda record: len(record["attempts"]),
        "last attempt": last_verdict,
        **_fields("url"),
    },
)
MESSAGES: Final = Kind(
    "sms",
    "messages",
    (
        _SERVICE,
        Filter("status", "messages of this status, such as SENT", ("--status",)),
        Filter(
            "customer_number",
            "messages to this number, in the form with 233",
            ("--customer-number",),
        ),
        Filter("batch_id", "messages of this bulk send", ("--batch-id",)),
        _MODE,
    ),
    {
        **_fields("time=created_at", "id=processing_id", "service=service_id"),
        **_fields("to=customer_number", "status", "units=units_charged"),
        **_fields("sender=sender_id", "message"),
    },
)
