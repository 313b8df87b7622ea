"""Reads answers and notifications: the word of the outcome, the echoed fields, and the result.

A word counts only with an HTTP status that fits it: HTTP 3xx and 5xx prove nothing, and 4xx does
not prove a success. An answer without a word, or with one that is not in a table, is UNKNOWN.
"""

from collections.abc import Mapping
from typing import Any, Final

from sandbox_sim.networks.http_client import HttpAnswer
from sandbox_sim.networks.http_json.settings import UNKNOWN, FieldsTable, Meaning
from sandbox_sim.networks.http_json.templates import from_hex, from_minor_units
from sandbox_sim.ports.network import StatusResult, SubmitResult
from sandbox_sim.records.reports import NOTHING_PROMISED, AlwaysSent, Echo, Field, Outcome, Source
from sandbox_sim.values.peer_input import amount_of, document_of, text_of

# A longer reason is cut.
MOST_CHARACTERS: Final = 200

_NEGATIVE: Final = frozenset({Outcome.FAILED, Outcome.REFUSED, Outcome.NOT_SENT})

_FIELDS: Final = (Field.REFERENCE, Field.AMOUNT, Field.CURRENCY)


class AnswerReader:
    """Reads the answers of one kind by its tables.

    currency: for an `amount_minor` that comes without a currency.
    """

    def __init__(self, fields: FieldsTable, outcomes: Mapping[str, Meaning], currency: str) -> None:
        self._fields = fields
        self._outcomes = outcomes
        self._currency = currency

    def always_sent(self, source: Source) -> AlwaysSent:
        """The fields that come with every success from this source."""
        fields = self._fields
        if not any(each.outcome is Outcome.SUCCEEDED for each in self._outcomes.values()):
            return NOTHING_PROMISED
        paths = (fields.reference, fields.amount or fields.amount_minor, fields.currency)
        return frozenset(
            (source, field)
            for field, path in zip(_FIELDS, paths, strict=True)
            if path is not None and field.value not in fields.optional
        )

    def word(self, document: Mapping[str, Any]) -> str:
        """The word of the outcome: the first one that is not empty, or empty."""
        words = (_as_word(_value_at(document, path)) for path in self._fields.outcome)
        return next(filter(None, words), "")

    def meaning(self, document: Mapping[str, Any]) -> Meaning:
        """What the word means."""
        return self._outcomes.get(self.word(document), UNKNOWN)

    def echo(self, document: Mapping[str, Any]) -> Echo:
        """The reference, amount and currency that the network repeats."""
        fields = self._fields
        currency = self._text(document, fields.currency).upper()
        amount = amount_of(_value_at(document, fields.amount))
        minor = amount_of(_value_at(document, fields.amount_minor))
        if minor is not None:
            amount = from_minor_units(minor, currency or self._currency)
        reference = from_hex(self._text(document, fields.reference))
        return Echo(reference or None, amount, currency or None)

    def network_id(self, document: Mapping[str, Any]) -> str:
        """The network's own identifier, or empty."""
        return self._text(document, self._fields.network_id)

    def reason(self, document: Mapping[str, Any]) -> str:
        """Why the payment failed, in the network's words; else the word of the outcome."""
        reasons = (self._text(document, path) for path in self._fields.reason)
        return (next(filter(None, reasons), "") or self.word(document))[:MOST_CHARACTERS]

    def _text(self, document: Mapping[str, Any], path: tuple[str, ...] | None) -> str:
        return text_of(_value_at(document, path))


def submit_result(
    answer: HttpAnswer, reader: AnswerReader, statuses: Mapping[int, Meaning]
) -> SubmitResult:
    """The result of a submit: by the word of the answer, else by its HTTP status."""
    document = document_of(answer.body)
    meaning = _trusted_meaning(answer.status, reader, document)
    if meaning.outcome is Outcome.REVERSED:  # only a status query confirms it
        meaning = UNKNOWN
    if not reader.word(document):
        meaning = statuses.get(answer.status, UNKNOWN)
    negative = meaning.outcome in {*_NEGATIVE, Outcome.UNKNOWN}
    reason = _describe_answer(answer.status, reader.reason(document)) if negative else ""
    network_id, echo = reader.network_id(document), reader.echo(document)
    return SubmitResult(meaning.outcome, meaning.code, reason, network_id, echo=echo)


def status_result(
    answer: HttpAnswer,
    reader: AnswerReader,
    statuses: Mapping[int, Meaning],
    *,
    failure_counts: bool,
) -> StatusResult:
    """The result of a status query.

    failure_counts: False if a failure still counts as PENDING, by the setting `failed_after_s`.
    """
    document = document_of(answer.body)
    meaning = _trusted_meaning(answer.status, reader, document)
    if meaning == UNKNOWN:
        meaning = statuses.get(answer.status, UNKNOWN)
    outcome = meaning.outcome
    if outcome is Outcome.UNKNOWN:
        reason = _describe_answer(answer.status, reader.reason(document))
        return StatusResult(Outcome.UNKNOWN, found=meaning.found, reason=reason)
    failed = outcome is Outcome.FAILED
    if failed and not failure_counts:
        outcome = Outcome.PENDING
    reason = reader.reason(document) if failed else ""
    network_id, echo = reader.network_id(document), reader.echo(document)
    return StatusResult(outcome, reason=reason, network_id=network_id, echo=echo)


def _trusted_meaning(status: int, reader: AnswerReader, document: Mapping[str, Any]) -> Meaning:
    """What the word means, if the HTTP status fits it."""
    meaning = reader.meaning(document)
    if 200 <= status < 300:
        return meaning
    if 400 <= status < 500 and (meaning.outcome in _NEGATIVE or not meaning.found):
        return meaning
    return UNKNOWN


def _value_at(document: object, path: tuple[str, ...] | None) -> object:
    """The value of the member at a path, or None."""
    if path is None:
        return None
    found = document
    for name in path:
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def _as_word(value: object) -> str:
    """A word of an outcome table: a text, a whole number, `true` or `false`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_of(value)


def _describe_answer(status: int, reason: str) -> str:
    return f"HTTP {status}, {reason}" if reason else f"HTTP {status}"
