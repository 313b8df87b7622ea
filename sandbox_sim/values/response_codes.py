"""The catalogue of response codes: meaning, HTTP status, and the parts of a reply.

Source: "codes", and D5, D7, D8, D14 where the interface does not decide.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox_sim.values.redaction import redact_text

if TYPE_CHECKING:
    from sandbox_sim.operations import Operation


class Code:
    """The response codes by name; `CATALOGUE` has the message and HTTP status of each.

    Plain strings, because an answer, the journal and the stores take them as they are.
    """

    SUCCESS: Final = "000"
    RECEIVED: Final = "202"
    SMS_RECEIVED: Final = "370"
    SMS_BALANCE: Final = "388"
    SMS_HISTORY: Final = "393"
    NOT_AUTHENTICATED: Final = "100"
    BAD_REQUEST: Final = "400"
    UNAUTHORIZED: Final = "401"
    INSUFFICIENT_BALANCE: Final = "402"
    FORBIDDEN: Final = "403"
    NOT_FOUND: Final = "404"
    TOO_MANY_REQUESTS: Final = "429"
    SERVER_ERROR: Final = "500"
    NO_SENDER_ID: Final = "216"
    DUPLICATE: Final = "219"
    INSUFFICIENT_SMS_UNITS: Final = "237"
    SMS_NOT_PROCESSED: Final = "371"
    BAD_RECIPIENTS: Final = "389"
    TOO_MANY_RECIPIENTS: Final = "390"
    DECLINED: Final = "015"
    AMOUNT_ABOVE_CAP: Final = "016"
    NOT_ALLOWED: Final = "019"
    NO_SUCH_TRANSACTION: Final = "027"
    SMS_NUMBER_NOT_ALLOWED: Final = "S002"


@dataclass(frozen=True, slots=True)
class ResponseCode:
    """One row of the catalogue; `sandbox` marks codes whose HTTP status is a setting (D7)."""

    code: str
    http_status: int
    message: str
    sandbox: bool = False


_ROWS: Final = (
    ResponseCode(Code.SUCCESS, 200, "Success"),
    ResponseCode(Code.RECEIVED, 202, "Request successfully received for processing"),
    ResponseCode(Code.SMS_RECEIVED, 200, "SMS request has been received for processing"),
    ResponseCode(Code.SMS_BALANCE, 200, "Success"),
    ResponseCode(Code.SMS_HISTORY, 200, "Success"),
    ResponseCode(Code.NOT_AUTHENTICATED, 401, "You are not allowed to use this service"),
    ResponseCode(Code.BAD_REQUEST, 400, "Bad request"),
    ResponseCode(Code.UNAUTHORIZED, 401, "Unauthorized"),
    ResponseCode(Code.INSUFFICIENT_BALANCE, 402, "Insufficient balance"),
    ResponseCode(Code.FORBIDDEN, 403, "You do not have access to this service"),
    ResponseCode(Code.NOT_FOUND, 404, "Not found"),
    ResponseCode(Code.TOO_MANY_REQUESTS, 429, "Too many requests, please retry later"),
    ResponseCode(Code.SERVER_ERROR, 500, "The request could not be processed, please retry later"),
    ResponseCode(Code.NO_SENDER_ID, 200, "SMS sender ID is missing"),
    ResponseCode(Code.DUPLICATE, 200, "Duplicate transaction_id"),
    ResponseCode(Code.INSUFFICIENT_SMS_UNITS, 200, "Insufficient SMS balance"),
    ResponseCode(Code.SMS_NOT_PROCESSED, 200, "SMS could not be processed"),
    ResponseCode(Code.BAD_RECIPIENTS, 200, "Recipients are missing or invalid"),
    ResponseCode(Code.TOO_MANY_RECIPIENTS, 200, "Too many recipients, at most 1,000 are allowed"),
    ResponseCode(Code.DECLINED, 200, "Insufficient funds", sandbox=True),
    ResponseCode(
        Code.AMOUNT_ABOVE_CAP, 200, "Amount is above the sandbox maximum of 10000", sandbox=True
    ),
    ResponseCode(
        Code.NOT_ALLOWED, 200, "Number, account or card is not allowed in sandbox", sandbox=True
    ),
    ResponseCode(Code.NO_SUCH_TRANSACTION, 200, "Transaction not found", sandbox=True),
    ResponseCode(Code.SMS_NUMBER_NOT_ALLOWED, 200, "Number is not allowed in sandbox"),
)


CATALOGUE: Final[Mapping[str, ResponseCode]] = {row.code: row for row in _ROWS}


# The codes of accepted requests; every other code is a rejection and is logged as one.
ACCEPTED: Final = frozenset({"000", "202", "370", "388", "393"})


# The codes that SMS operations answer with the HTTP status of the catalogue; all others come with
# HTTP 200 (D6).
_KEEP_STATUS_ON_SMS: Final = frozenset(
    {Code.NOT_AUTHENTICATED, Code.UNAUTHORIZED, Code.TOO_MANY_REQUESTS, Code.SERVER_ERROR}
)


class Reply(NamedTuple):
    """The decision of the gateway about one request, before it is written as an HTTP answer.

    code: a key of `CATALOGUE`.
    rule: the numbered rule that decided, such as `sandbox.3` or `D14`; `override` or `fault`.
    why: the reason in words, for the journal and `X-Sandbox-Why` (D36).
    message: `response_message`, if it is not the one of the catalogue.
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

    def from_operation(self, operation: "Operation | None") -> "Reply":
        """The reply to a request that reached this operation: SMS operations answer HTTP 200 (D6).

        operation: None if it is not known; then the reply stays as it is.
        """
        if operation is None or not operation.is_sms or self.code in _KEEP_STATUS_ON_SMS:
            return self
        return self._replace(http_status=200)

    def with_warnings(self, warnings: tuple[str, ...]) -> "Reply":
        """The reply with these warnings, after those that it has."""
        return self._replace(warnings=self.warnings + warnings) if warnings else self

    @property
    def sentence(self) -> str:
        """The reason and the warnings, as the log and `X-Sandbox-Why` have them (D36)."""
        return "; ".join((self.why, *self.warnings)) if self.warnings else self.why

    def redacted(self) -> "Reply":
        """The reply with its texts redacted (D38); `fields` are the interface's own."""
        return self._replace(
            why=redact_text(self.why),
            message=None if self.message is None else redact_text(self.message),
            warnings=tuple(map(redact_text, self.warnings)),
        )
