"""The catalogue of response codes: meaning, HTTP status, and the parts of a reply.

Source: "codes", and D5, D7, D8, D14 where the interface does not decide.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from sandbox_sim.domain.redaction import redact_text


@dataclass(frozen=True, slots=True)
class ResponseCode:
    """One row of the catalogue; `sandbox` marks codes whose HTTP status is a setting (D7)."""

    code: str
    http_status: int
    message: str
    sandbox: bool = False


_ROWS: Final = (
    ResponseCode("000", 200, "Success"),
    ResponseCode("202", 202, "Request successfully received for processing"),
    ResponseCode("370", 200, "SMS request has been received for processing"),
    ResponseCode("388", 200, "Success"),
    ResponseCode("393", 200, "Success"),
    ResponseCode("100", 401, "You are not allowed to use this service"),
    ResponseCode("400", 400, "Bad request"),
    ResponseCode("401", 401, "Unauthorized"),
    ResponseCode("402", 402, "Insufficient balance"),
    ResponseCode("403", 403, "You do not have access to this service"),
    ResponseCode("404", 404, "Not found"),
    ResponseCode("429", 429, "Too many requests, please retry later"),
    ResponseCode("500", 500, "The request could not be processed, please retry later"),
    ResponseCode("216", 200, "SMS sender ID is missing"),
    ResponseCode("219", 200, "Duplicate transaction_id"),
    ResponseCode("237", 200, "Insufficient SMS balance"),
    ResponseCode("371", 200, "SMS could not be processed"),
    ResponseCode("389", 200, "Recipients are missing or invalid"),
    ResponseCode("390", 200, "Too many recipients, at most 1,000 are allowed"),
    ResponseCode("015", 200, "Insufficient funds", sandbox=True),
    ResponseCode("016", 200, "Amount is above the sandbox maximum of 10000", sandbox=True),
    ResponseCode("019", 200, "Number, account or card is not allowed in sandbox", sandbox=True),
    ResponseCode("027", 200, "Transaction not found", sandbox=True),
    ResponseCode("S002", 200, "Number is not allowed in sandbox"),
)

CATALOGUE: Final[Mapping[str, ResponseCode]] = MappingProxyType({row.code: row for row in _ROWS})

# The codes of accepted requests; every other code is a rejection and is logged as one.
ACCEPTED: Final = frozenset({"000", "202", "370", "388", "393"})


class Reply(NamedTuple):
    """The decision of the gateway about one request, before it is written as an HTTP answer.

    code: a key of `CATALOGUE`.
    rule: the numbered rule that decided, such as `sandbox.3` or `D14`; `override` or `fault`.
    why: the reason in words, for the journal.
    message: `response_message`, where it is not the one of the catalogue.
    fields: further fields of the body, such as `response_data` or `redirect_url`.
    http_status, headers: only where they differ from the catalogue.
    warnings: remarks about an accepted request.
    awaited_by: the transaction whose callback waits until this answer is written (D16).
    """

    code: str
    rule: str
    why: str
    message: str | None = None
    fields: Mapping[str, object] | None = None
    http_status: int | None = None
    headers: Mapping[str, str] | None = None
    warnings: tuple[str, ...] = ()
    awaited_by: str | None = None

    def redacted(self) -> "Reply":
        """The reply with its texts redacted (D38); `fields` are the interface's own."""
        return self._replace(
            why=redact_text(self.why),
            message=None if self.message is None else redact_text(self.message),
            warnings=tuple(map(redact_text, self.warnings)),
        )
