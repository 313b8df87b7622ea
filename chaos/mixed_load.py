"""The mixed load of one shop: every operation, with every outcome that the rules have for it."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from types import MappingProxyType
from typing import Any, Final

from chaos.facts import SENT
from chaos.request_drafts import Draft, HistoryDraft, PaymentDraft, SendDraft, StatusDraft

ACCEPT, DECLINE, STRANGER, OVER = "accept", "decline", "stranger", "over the cap"
_FATES: Final = (ACCEPT, DECLINE, STRANGER, OVER)
_FATE_WEIGHTS: Final = (76, 10, 7, 7)
_CODES: Final = MappingProxyType({ACCEPT: "202", DECLINE: "015", STRANGER: "019", OVER: "016"})
_PREFIXES: Final = ("0244", "0200", "0270")
_BILLERS: Final = MappingProxyType({"GOT": "100", "DST": "102", "ECG": "200", "GHW": "204"})
_CARD: Final = MappingProxyType(
    {
        "nw": "VIS",
        "payment_option": "CRD",
        "currency_code": "GHS",
        "currency_val": "12.50",
        "landing_page": "http://127.0.0.1:9/thanks",
    }
)
# After this many answers of 237 the shop goes on with another service.
_ENOUGH_237: Final = 3
REQUEST_TIME: Final = "2026-01-31 09:30:00"


@dataclass(frozen=True, slots=True)
class _Operation:
    """A payment operation: its path and fields, and the code above the cap where it differs."""

    path: str
    fields: Mapping[str, str]
    above_cap: str = "016"
    accepted: str = "202"


def _mobile(trans_type: str, above_cap: str = "016") -> _Operation:
    fields = {"trans_type": trans_type, "nw": "MTN", "payment_option": "MOM"}
    return _Operation("/make_payment", fields, above_cap)


COLLECTION: Final = _mobile("CTM")
CARD: Final = _Operation("/make_payment", {"trans_type": "CTM", **_CARD}, accepted="000")
BILL: Final = _Operation("/pay_bill", {"trans_type": "BLP"})
AIRTIME: Final = _Operation("/send_airtime", {"trans_type": "ATP", "nw": "VOD"})
DEPOSIT: Final = _mobile("DTTW", "202")
PAYOUT: Final = _mobile("MTC", "402")


class Shop:
    """A merchant of the harness. It uses one service, and the next one when its units are used up.

    Several clients share a shop, so they charge the same balance at once.
    """

    def __init__(self, rng: Random, callback_url: str, services: Iterator[int], run: str) -> None:
        self._rng = rng
        self._callback_url = callback_url
        self._services = services
        self._run = run
        self._numbers = count(1)
        self._recent: deque[str] = deque(maxlen=30)
        self._batches: deque[str] = deque(maxlen=10)
        self._without_units = 0
        self.service_id = next(services)
        self._kinds: Sequence[tuple[int, Callable[[], Draft]]] = (
            (22, lambda: self._payment(COLLECTION)),
            (7, lambda: self._payment(AIRTIME)),
            (7, lambda: self._payment(BILL)),
            (7, lambda: self._payment(PAYOUT)),
            (3, lambda: self._payment(DEPOSIT)),
            (3, lambda: self._payment(CARD)),
            (16, self._send),
            (5, self._bulk),
            (18, self._status),
            (6, self._history),
            (3, lambda: self._query("/sms/balance", "388")),
            (3, lambda: self._query("/get_account_balance", "000", request_time=REQUEST_TIME)),
        )
        self._weights = [weight for weight, _ in self._kinds]

    def next(self) -> Draft:
        """Return the next request of a client."""
        (_, draft), *_ = self._rng.choices(self._kinds, self._weights)
        return draft()

    def heard(self, draft: Draft, code: str | None, answer: Mapping[str, Any]) -> None:
        """Note an answer, or its absence, to know what to query and when to change the service."""
        if draft.service_id != self.service_id:
            return
        if isinstance(draft, PaymentDraft):
            self._recent.append(draft.transaction_id)
        elif isinstance(draft, SendDraft) and code == SENT:
            self._batches.append(answer["response_data"]["batch_id"] or "")
        elif code == "237":
            self._without_units += 1
            if self._without_units == _ENOUGH_237:
                self._move_on()

    def _move_on(self) -> None:
        self.service_id = next(self._services)
        self._without_units = 0
        self._recent.clear()
        self._batches.clear()

    def _name(self) -> str:
        """A unique name. Its letters keep the digits apart: the gateway masks card numbers."""
        return f"{self._run}-s{self.service_id}-n{next(self._numbers)}"

    def _payment(self, operation: _Operation) -> PaymentDraft:
        (fate,) = self._rng.choices(_FATES, _FATE_WEIGHTS)
        if operation is CARD and fate == DECLINE:
            fate = ACCEPT
        codes = {**_CODES, ACCEPT: operation.accepted, OVER: operation.above_cap}
        body = {
            "service_id": self.service_id,
            "reference": "Order",
            "transaction_id": self._name(),
            "amount": 10000.5 if fate == OVER else self._rng.randrange(1, 500) / 100,
            "nickname": "Ama Mensah",
            "callback_url": self._callback_url,
            "request_time": REQUEST_TIME,
            **operation.fields,
            **self._party(operation, fate),
        }
        return PaymentDraft(operation.path, body, frozenset({codes[fate]}))

    def _party(self, operation: _Operation, fate: str) -> Mapping[str, str]:
        """The number, account or card, which decides the outcome."""
        if operation is CARD:
            good = fate != STRANGER
            return {"customer_number": "4111111111111111" if good else "4000000000000002"}
        if operation is BILL:
            nw = self._rng.choice(sorted(_BILLERS))
            digits = "999" if fate == STRANGER else _BILLERS[nw]
            account = f"{digits}000000{self._rng.randrange(100):02}{self._last_digit(fate)}"
            return {"nw": nw, "account_number": account}
        return {"customer_number": self._number(fate)}

    def _number(self, fate: str) -> str:
        prefix = "0540" if fate == STRANGER else self._rng.choice(_PREFIXES)
        return f"{prefix}{self._rng.randrange(10**5):05}{self._last_digit(fate)}"

    def _last_digit(self, fate: str) -> int:
        return 9 if fate == DECLINE else self._rng.randrange(9)

    def _send(self) -> SendDraft:
        (fate,) = self._rng.choices((ACCEPT, DECLINE, STRANGER), (75, 20, 5))
        number = self._number(fate)
        if self._rng.random() < 0.3:
            number = f"233{number[1:]}"
        return self._sms("/sms/send", fate, customer_number=number)

    def _bulk(self) -> SendDraft:
        (fate,) = self._rng.choices((ACCEPT, STRANGER), (95, 5))
        fates = self._rng.choices((ACCEPT, DECLINE), (85, 15), k=self._rng.randrange(12, 40))
        if fate == STRANGER:
            fates[self._rng.randrange(len(fates))] = STRANGER
        return self._sms("/sms/bulk", fate, recipients=[self._number(fate) for fate in fates])

    def _sms(self, path: str, fate: str, **to: Any) -> SendDraft:
        """A unique text; sometimes it is long enough for a second page."""
        pages = 2 if self._rng.random() < 0.15 else 1
        text = self._name().ljust(100 if pages == 1 else 200, ".")
        body = {"service_id": self.service_id, "msg_body": text, "sender_id": "Shop", **to}
        return SendDraft(path, body, self._codes_of_sms(fate), pages)

    def _codes_of_sms(self, fate: str) -> frozenset[str]:
        if fate == STRANGER:
            return frozenset({"S002"})
        return frozenset({"237"} if self.service_id % 10 == 9 else {"370", "237"})

    def _status(self) -> Draft:
        if not self._recent:
            return self._query("/sms/balance", "388")
        transaction_id = self._rng.choice(self._recent)
        body = {"service_id": self.service_id, "transaction_id": transaction_id}
        return StatusDraft("/get_transaction_status", body, StatusDraft.codes)

    def _history(self) -> Draft:
        filters: list[Mapping[str, Any]] = [{}, {"limit": 100}, {"status": "SENT"}, {"page": 2}]
        filters += [{"batch_id": batch_id} for batch_id in self._batches if batch_id]
        body = {"service_id": self.service_id, **self._rng.choice(filters)}
        return HistoryDraft("/sms/history", body, frozenset({"393"}))

    def _query(self, path: str, code: str, **fields: str) -> Draft:
        return Draft(path, {"service_id": self.service_id, **fields}, frozenset({code}))
