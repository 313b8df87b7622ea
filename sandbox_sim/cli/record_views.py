"""The four kinds of record: the filters that are options, and the columns of their tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sandbox_sim.cli import tables
from sandbox_sim.cli.matching import Filter
from sandbox_sim.domain.payments.transactions import STATUS_WORDS

_WORD_OF: Final = {code.value: word for word, code in STATUS_WORDS.items()}

Shown = Mapping[str, Any]


class Kind(NamedTuple):
    """One kind; `plural` is its name in paths and answers, `words` its name in messages.

    columns: for each heading a function that returns the cell of a record.
    """

    plural: str
    words: str
    filters: Sequence[Filter]
    columns: Mapping[str, Callable[[Shown], object]]

    def lines(self, records: Sequence[Shown]) -> Iterator[str]:
        """The records as a table, or the line that there are none."""
        if not records:
            yield f"no {self.words}"
            return
        cells = self.columns.values()
        rows = [[cell(record) for cell in cells] for record in records]
        yield from tables.table(list(self.columns), rows)


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
    ),
    {
        **_fields("time=at", "id", "service=service_id", "path"),
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
    ),
    {
        "time": lambda record: record["timeline"][0]["at"],
        **_fields("service=service_id", "transaction=transaction_id", "operation"),
        "amount": lambda record: f"{record['amount']} {record['currency_code']}",
        **_fields("nw", "party"),
        "status": lambda record: status_in_words(record["status"]),
    },
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
    ),
    {
        **_fields("time=created_at", "id=processing_id", "service=service_id"),
        **_fields("to=customer_number", "status", "units=units_charged"),
        **_fields("sender=sender_id", "message"),
    },
)
