"""What the words and the HTTP statuses of an API mean, as the configuration writes it.

A word means `pending`, `succeeded`, `failed`, `reversed`, `not_sent`, `refused CODE` or
`not_found`; each place takes some of them. What is not listed is unknown.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, PlainValidator

from sandbox_sim.records.reports import Outcome
from sandbox_sim.values.redaction import nearest

_REFUSED: Final = Outcome.REFUSED.value

_REVERSED: Final = Outcome.REVERSED.value

# Not an outcome: the network does not know the reference.
_NOT_FOUND: Final = "not_found"

# The codes of the interface with which a client may learn of a refusal.
REFUSAL_CODES: Final = ("400", "402", "429", "500", "015", "016", "019", "371", "S002")

_EXAMPLE: Final = f'"{_REFUSED} CODE" with one of the codes {", ".join(REFUSAL_CODES)}'


class Meaning(NamedTuple):
    """What a word means.

    code: of REFUSED, the code that the client gets.
    found: False where the network says that it does not know the reference.
    """

    outcome: Outcome
    code: str = ""
    found: bool = True


UNKNOWN: Final = Meaning(Outcome.UNKNOWN)


def _meaning(written: object, further: Iterable[str]) -> Meaning:
    """Read a meaning. further: what may be written beside the three outcomes of every place.

    Raises:
        ValueError: it is none of those that are allowed, or a refusal without a code.
    """
    names = ("pending", "succeeded", "failed", *further)
    name, _, code = written.partition(" ") if isinstance(written, str) else ("", "", "")
    if name not in names:
        near = nearest(name, names) if name else None
        hint = f"; did you mean {near}?" if near else ""
        listed = ", ".join(each for each in names if each != _REFUSED)
        refusal = f", or {_EXAMPLE}" if _REFUSED in names else ""
        raise ValueError(f"must be one of {listed}{refusal}{hint}")
    if name == _REFUSED:
        if code not in REFUSAL_CODES:
            raise ValueError(f"must be {_EXAMPLE}")
        return Meaning(Outcome.REFUSED, code)
    if code:
        raise ValueError(f"must be {name} alone; only a refusal has a code")
    if name == _NOT_FOUND:
        return Meaning(Outcome.UNKNOWN, found=False)
    return Meaning(Outcome(name))


def _of_submit_statuses(found: Mapping[int, Meaning]) -> Mapping[int, Meaning]:
    for status, meaning in found.items():
        if 200 <= status < 300:
            _require(
                meaning.outcome is Outcome.PENDING,
                f"HTTP {status} alone can only mean pending; give other outcomes by a word",
            )
        else:
            _require_client_error(status)
            _require(
                meaning.outcome in {Outcome.REFUSED, Outcome.NOT_SENT},
                f"HTTP {status} alone can only mean not_sent or {_EXAMPLE}",
            )
    return found


def _of_query_statuses(found: Mapping[int, Meaning]) -> Mapping[int, Meaning]:
    for status, meaning in found.items():
        _require_client_error(status)
        _require(not meaning.found, f"HTTP {status} alone can only mean {_NOT_FOUND}")
    return found


def _require_client_error(status: int) -> None:
    _require(
        400 <= status < 500,
        f"HTTP {status} proves nothing, because the network may have taken the payment; "
        "leave it out, then the outcome is unknown and the network is asked",
    )


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(sentence)


SubmitMeaning = Annotated[
    Meaning, PlainValidator(partial(_meaning, further=("not_sent", _REVERSED, _REFUSED)))
]

StatusMeaning = Annotated[
    Meaning, PlainValidator(partial(_meaning, further=(_REVERSED, _NOT_FOUND)))
]

NotificationMeaning = Annotated[Meaning, PlainValidator(partial(_meaning, further=(_REVERSED,)))]

SubmitStatuses = Annotated[dict[int, SubmitMeaning], AfterValidator(_of_submit_statuses)]

QueryStatuses = Annotated[dict[int, StatusMeaning], AfterValidator(_of_query_statuses)]
