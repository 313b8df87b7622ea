"""The adapter for SMS over SMPP 3.4. Source: D39.

- A message is sent in as many parts as it has pages, one after the other, each once.
- A part is sent again only after the SMSC definitely refused it because of its load.
- A part without an answer leaves the message UNKNOWN: it may have arrived, so it is not repeated.
  The parts after it are still sent, because a phone shows a message only when it has them all.
- The identifier of each part is saved before the submit ends; receipts are matched by it.
- A receipt is answered only after it is saved. Without an answer the SMSC sends it again.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from sandbox_sim.networks.settings import adapter_factory
from sandbox_sim.networks.smpp import outgoing, pdus
from sandbox_sim.networks.smpp.connection import (
    Deliveries,
    NoSmppResponse,
    NotWritten,
    Pauses,
    SmppLink,
    SmscConnection,
)
from sandbox_sim.networks.smpp.outgoing import Part, Unsendable
from sandbox_sim.networks.smpp.pdus import Pdu, UnreadablePdu
from sandbox_sim.networks.smpp.settings import SmppSettings
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Clock, RunningTasks
from sandbox_sim.ports.network import (
    Capabilities,
    Health,
    NetworkEnvironment,
    NetworkEvents,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records.exchanges import Exchange, NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.ledger import SMS_UNITS
from sandbox_sim.records.reports import Outcome
from sandbox_sim.values.response_codes import Code

FIRST_PAUSE_S: Final = 1.0

LONGEST_PAUSE_S: Final = 30.0


class Throttle:
    """A pause before the next submit, which is doubled each time, up to `LONGEST_PAUSE_S`.

    longest_wait_s: how long one part waits in all, in real time.
    """

    def __init__(self, clock: Clock, longest_wait_s: float) -> None:
        self._clock = clock
        self._longest_wait_s = longest_wait_s
        self._pause_s = 0.0
        self._slowed_at = 0.0
        self._pauses = Pauses(clock)

    async def wait(self) -> None:
        """Return when the pause is over, or when the network is closed."""
        await self._pauses.wait(self._slowed_at + self._pause_s - self._clock.monotonic())

    def slow_down(self) -> float:
        """Lengthen the pause, because the SMSC refused a part; returns the new pause."""
        now = self._clock.monotonic()
        if now >= self._slowed_at + self._pause_s:  # only once for parts that were sent together
            self._pause_s = min(self._pause_s * 2 or FIRST_PAUSE_S, LONGEST_PAUSE_S)
            self._slowed_at = now
        return self._pause_s

    def speed_up(self) -> None:
        """Remove the pause, because the SMSC took a part."""
        self._pause_s = 0.0

    def is_too_long(self, waited_s: float) -> bool:
        """Whether a part has waited long enough to be given up."""
        return waited_s > self._longest_wait_s or self._pauses.has_ended

    def close(self) -> None:
        """End all waiting."""
        self._pauses.end()


_NO_STATUS: Final = "SMPP networks report by receipts and are not asked"


log = logging.getLogger("sandbox_sim.networks")


class Smpp:
    """The adapter for one account at an SMSC."""

    def __init__(self, settings: SmppSettings, environment: NetworkEnvironment) -> None:
        self._settings = settings
        self._name = environment.name
        self._clock = environment.clock
        self._timeout_s = environment.timeout.total_seconds()
        self.scrubber = Scrubber([settings.password.get_secret_value()])
        self._deliveries = Deliveries(self._on_delivery)
        clock, ids = environment.clock, environment.ids
        self._link = SmppLink(
            environment.name, settings, clock, ids, self._deliveries, self._timeout_s
        )
        self._window = asyncio.Semaphore(settings.window)
        self._throttle = Throttle(environment.clock, settings.throttled_for_s)
        self._bad_receipts = 0
        self._late_answers = RunningTasks()
        self._events: NetworkEvents | None = None
        self._reference = int(environment.ids.draw() * 256)
        self.capabilities = Capabilities(
            operations=frozenset({Operation.SMS}),
            currencies=frozenset({SMS_UNITS}),
            has_status=False,
            trust=NotificationTrust.SIGNED,
            decides_within=timedelta(seconds=settings.receipt_timeout_s),
            # Each part may take the whole timeout, and wait while the SMSC is overloaded.
            submit_within=timedelta(
                seconds=outgoing.MOST_PARTS * self._timeout_s + settings.throttled_for_s
            ),
        )

    async def open(self, events: NetworkEvents) -> None:
        """Start to bind; retries while the SMSC is unreachable."""
        self._events = events
        self._link.open()

    async def close(self) -> None:
        """Unbind. Submits under way end as UNKNOWN; the SMSC repeats unanswered receipts."""
        self._throttle.close()
        await self._link.close()
        await self._deliveries.close()
        await self._late_answers.cancel()
        self._events = None

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a message, part by part."""
        objection = self.capabilities.objection(request)
        if objection is not None:
            return SubmitResult(Outcome.NOT_SENT, reason=objection)
        self._reference = (self._reference + 1) % 256
        try:
            kind = self._settings.source_address_type
            parts = outgoing.parts_of(request, kind, self._reference)
        except Unsendable as reason:
            return SubmitResult(Outcome.NOT_SENT, reason=str(reason))
        results: list[SubmitResult] = []
        for part in parts:
            results.append(await self._send(request.attempt_id, part))
            if results[-1].outcome in {Outcome.NOT_SENT, Outcome.REFUSED}:
                break
        return _message_result(results, len(parts))

    async def status(self, query: StatusQuery) -> StatusResult:
        """UNKNOWN: only receipts bring the outcome."""
        return StatusResult(Outcome.UNKNOWN, reason=_NO_STATUS)

    def verify(self, raw: RawNotification) -> bool:
        """False: receipts come over the SMPP connection, not by HTTP."""
        return False

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """Raise `UnreadableNotification`: receipts do not come by HTTP."""
        raise UnreadableNotification("SMPP networks send no notification by HTTP")

    async def health(self) -> Health:
        """Whether the connection is bound, and how many receipts could not be read."""
        if await self._link.bound() is None:
            return Health(ok=False, detail=self._link.problem)
        at = f"{self._settings.host}:{self._settings.port}"
        bad = f"; {self._bad_receipts} receipts could not be read" if self._bad_receipts else ""
        return Health(ok=True, detail=f"bound at {at} as {self._settings.system_id}{bad}")

    async def _send(self, attempt_id: str, part: Part) -> SubmitResult:
        """Send a part; again while the SMSC refuses it because of its load."""
        waited_s = 0.0
        while True:
            async with self._window:
                await self._throttle.wait()
                result = await self._send_once(attempt_id, part)
            if result.reason not in pdus.THROTTLED:
                return result
            waited_s += self._throttle.slow_down()
            if self._throttle.is_too_long(waited_s):
                return result

    async def _send_once(self, attempt_id: str, part: Part) -> SubmitResult:
        """Send a part once; the reason is in `THROTTLED` if the SMSC refuses it for its load."""
        began_at = self._clock.monotonic()
        # Only later parts wait for a connection; without one the first part fails at once.
        first = part.number == 1
        connection = await (
            self._link.bound() if first else self._link.bound_within(self._timeout_s)
        )
        answer = await self._answer_or_result(connection, attempt_id, part, began_at)
        self._report(attempt_id, part, answer, began_at)
        if isinstance(answer, SubmitResult):
            return answer
        result = _part_result(answer)
        if result.outcome is Outcome.PENDING:
            self._throttle.speed_up()
            await self._save_identifier(attempt_id, part, answer)
        return result

    async def _answer_or_result(
        self, connection: SmscConnection | None, attempt_id: str, part: Part, began_at: float
    ) -> Pdu | SubmitResult:
        """The answer of the SMSC, or the result if there is none."""
        if connection is None:
            reason, fault = self._link.problem, self._link.network_fault
            return SubmitResult(Outcome.NOT_SENT, reason=reason, network_fault=fault)
        try:
            return await connection.ask(
                lambda sequence: pdus.submit_sm(sequence, part),
                lambda answer: self._on_late_answer(attempt_id, part, answer, began_at),
            )
        except NotWritten as error:
            return SubmitResult(Outcome.NOT_SENT, reason=str(error), network_fault=True)
        except NoSmppResponse as error:
            fault = error.network_fault
            return SubmitResult(Outcome.UNKNOWN, reason=str(error), network_fault=fault)

    async def _save_identifier(self, attempt_id: str, part: Part, answer: Pdu) -> None:
        """Save the identifier of a part that the SMSC took."""
        key = pdus.key_of_answer(answer.message_id, self._settings.receipt_ids)
        if not key:
            log.warning("network %s accepted a part without a valid identifier", self._name)
        elif self._events is not None:
            await self._events.part_taken(attempt_id, part.number, part.total, key)

    def _on_late_answer(self, attempt_id: str, part: Part, answer: Pdu, began_at: float) -> None:
        """Apply an answer that came after the submit ended as UNKNOWN."""
        self._report(attempt_id, part, answer, began_at)
        self._late_answers.start(self._apply_late_answer(attempt_id, part, answer))

    async def _apply_late_answer(self, attempt_id: str, part: Part, answer: Pdu) -> None:
        result = _part_result(answer)
        if result.outcome is Outcome.PENDING:
            await self._save_identifier(attempt_id, part, answer)
        elif result.outcome is Outcome.REFUSED and self._events is not None:
            reason = _name_part(part.number, part.total, result.reason)
            refused = Notification(Outcome.FAILED, attempt_id=attempt_id, reason=reason)
            await self._events.notified(refused)

    async def _on_delivery(self, pdu: Pdu) -> int:
        """Save the receipt in a `deliver_sm` or `data_sm`; returns the status to answer it with."""
        try:
            receipt = pdus.receipt_of(pdus.delivered(pdu))
        except UnreadablePdu as error:
            self._bad_receipts += 1
            log.warning("network %s sent a receipt that is unreadable: %s", self._name, error)
            return pdus.PERMANENT_ERROR
        if receipt is None:
            log.info("network %s delivered a message from a phone; it is not stored", self._name)
            return pdus.OK
        key = pdus.key_of_receipt(receipt, self._settings.receipt_ids)
        if not key:
            log.warning("network %s sent a receipt without an identifier", self._name)
            return pdus.OK
        if self._events is None:
            return pdus.TEMPORARY_ERROR
        reason = self.scrubber.text(receipt.reason)
        await self._events.notified(Notification(receipt.outcome, part_id=key, reason=reason))
        return pdus.OK

    def _report(
        self, attempt_id: str, part: Part, answer: Pdu | SubmitResult, began_at: float
    ) -> None:
        """Report a part and its answer to the journal, without the text of the message."""
        if self._events is None:
            return
        sent = {
            "part": part.number,
            "parts": part.total,
            "source_addr": part.source.text,
            "destination_addr": part.destination.text,
            "data_coding": part.data_coding,
            "octets": len(part.octets),
        }
        response, problem = "", ""
        if isinstance(answer, SubmitResult):
            problem = answer.reason
        else:
            response = f"{pdus.name_of(answer.status)} {answer.message_id}".strip()
        self._events.exchanged(
            Exchange(
                self._name,
                "submit",
                attempt_id,
                self._clock.now(),
                round((self._clock.monotonic() - began_at) * 1000),
                "SUBMIT_SM",
                f"smpp://{self._settings.host}:{self._settings.port}",
                {},
                self.scrubber.body(json.dumps(sent).encode()),
                answer_body=self.scrubber.text(response),
                problem=self.scrubber.text(problem),
            )
        )


def _part_result(answer: Pdu) -> SubmitResult:
    """The result of a part by the answer to its `submit_sm`."""
    name = pdus.name_of(answer.status)
    if answer.command not in {pdus.SUBMIT_SM | pdus.ANSWER, pdus.GENERIC_NACK}:
        return SubmitResult(Outcome.UNKNOWN, reason="the SMSC sent an unexpected answer")
    if answer.command != pdus.GENERIC_NACK and answer.status == pdus.OK:
        return SubmitResult(Outcome.PENDING, network_id=answer.message_id)
    if name in pdus.THROTTLED:
        return SubmitResult(Outcome.REFUSED, code=Code.TOO_MANY_REQUESTS, reason=name)
    if name in pdus.REFUSALS:
        return SubmitResult(Outcome.REFUSED, code=pdus.REFUSALS[name], reason=name)
    return SubmitResult(Outcome.UNKNOWN, reason=name, network_fault=name in pdus.SYSTEM_ERRORS)


def _message_result(results: Sequence[SubmitResult], total: int) -> SubmitResult:
    """The result of a message, from the results of the parts that were sent."""
    last = results[-1]
    if len(results) == 1:
        return last
    if last.outcome in {Outcome.NOT_SENT, Outcome.REFUSED}:
        # Earlier parts were sent, but the message never arrives complete.
        reason = _name_part(len(results), total, last.reason)
        return replace(last, outcome=Outcome.FAILED, code="", reason=reason)
    network_id = next((each.network_id for each in results if each.network_id), "")
    for number, each in enumerate(results, 1):
        if each.outcome is Outcome.UNKNOWN:
            reason = _name_part(number, total, each.reason)
            return replace(each, reason=reason, network_id=network_id)
    return SubmitResult(Outcome.PENDING, network_id=network_id)


def _name_part(number: int, total: int, reason: str) -> str:
    return reason if total == 1 else f"part {number} of {total}: {reason}"


# The factory of the entry point `smpp`.
smpp = adapter_factory(SmppSettings, Smpp)
