"""What an adapter makes of the words of its network: status answers and notifications."""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from itertools import product
from typing import Final

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Notification, SubmitRequest, UnreadableNotification
from sandbox_sim.records.attempts import Change, apply
from sandbox_sim.records.exchanges import NotificationTrust, RawNotification
from sandbox_sim.records.reports import Echo, Field, Outcome, Report, Source, differences
from sandbox_sim.testing.network_contract.bench import (
    Bench,
    Disproved,
    NotProven,
    opened,
    require,
)
from sandbox_sim.testing.network_contract.peer import (
    CANARY_CARD,
    Decided,
    DecidingPeer,
    Fault,
    Peer,
    Signature,
)

# What an echo says in each field in place of what was sent.
_WRONG: Final[Mapping[Field, object]] = {
    Field.REFERENCE: "another-reference",
    Field.AMOUNT: Decimal("10.51"),
    Field.CURRENCY: "USD",
    Field.OPERATION: Operation.BALANCE,
}
_DAY: Final = timedelta(days=1)
# What a network says of an attempt, and the age of the attempt.
_SAID: Final[Mapping[Outcome, timedelta]] = {
    Outcome.PENDING: timedelta(0),
    Outcome.SUCCEEDED: _DAY,
    Outcome.FAILED: _DAY,
}
_UNREADABLE: Final = (b"", b"[]", b"{}", b"null", b"\xff\xfe", b'{"status"', b"<xml/>")
# Amounts that a float, or one decimal, would change; the smallest difference that there is.
_ODD: Final = tuple(map(Decimal, ("0.01", "0.29", "10.37", "19.99", "9999.95")))
_CENT: Final = Decimal("0.01")
_MANY: Final = 20


def _echo(request: SubmitRequest) -> Echo:
    return Echo(request.reference, request.amount, request.currency, request.operation)


async def status_is_read_right(peer: Peer) -> None:
    """`status` returns pending, succeeded and failed; a pending payment was submitted just now."""
    async with opened(peer) as bench:
        _needs_status(bench)
        for outcome, age in _SAID.items():
            request = bench.request(reference=f"reference {outcome}")
            await bench.submit(request)
            peer.decide(Decided(request, outcome, _echo(request)))
            found = await bench.status(request, age)
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            require(found.found, f"{outcome} is read as a reference that is not known")


async def twenty_questions_at_once_are_not_mixed(peer: Peer) -> None:
    """Of twenty status queries at once, each has its own answer."""
    async with opened(peer) as bench:
        _needs_status(bench)
        outcomes = list(_SAID)
        asked = [(bench.numbered(each), outcomes[each % len(outcomes)]) for each in range(_MANY)]
        for request, outcome in asked:
            await bench.submit(request)
            peer.decide(Decided(request, outcome, _echo(request)))
        calls = (bench.status(request, _SAID[outcome]) for request, outcome in asked)
        for (request, outcome), found in zip(asked, await asyncio.gather(*calls), strict=True):
            require(found.outcome is outcome, f"one of twenty that is {outcome} is read as {found}")
            wrong = differences(found.report, bench.attempt(request).sent, bench.terms.always_sent)
            require(not wrong, f"one of twenty gets the answer of another: {wrong}")


async def a_decision_at_once_is_read_right(peer: Peer) -> None:
    """A submit succeeds only where its answer says so, and only where that is declared."""
    async with opened(peer) as bench:
        declared = bench.network.capabilities.succeeds_at_once
        request = bench.request()
        decided = Decided(request, Outcome.SUCCEEDED, _echo(request))
        report = await _reported(bench, Source.SUBMIT, decided)
        if report is None:
            raise NotProven(
                "the other side has no answer with a decision (decided_at_once); ask the network "
                "which of its answers are final"
                if declared
                else "the network declares no success at once"
            )
        judged = apply(bench.attempt(request), report, bench.terms, bench.clock.now())
        ended = judged.change is Change.ENDED
        require(ended is declared, f"a success at once is read as {report}")
        only_taken = await bench.submit(bench.request(reference="only taken"))
        pending = only_taken.outcome is Outcome.PENDING
        require(pending, f"a request that is taken and not decided ends as {only_taken}")


async def a_refusal_is_read_right(peer: Peer) -> None:
    """A definite no of the network is REFUSED, with a code of the interface for the client."""
    async with opened(peer) as bench:
        decided = Decided(bench.request(), Outcome.REFUSED)
        if not isinstance(peer, DecidingPeer) or not peer.decide_at_once(decided):
            raise NotProven(
                "the other side shows no refusal (refused); ask the network which of its answers "
                "say that nothing was taken"
            )
        result = await bench.submit(decided.request)
        require(result.outcome is Outcome.REFUSED, f"a refusal is read as {result}")


async def a_confirmed_amount_counts_to_the_cent(peer: Peer) -> None:
    """A success of the amount counts, with odd cents too; one of a cent more or less does not."""
    async with opened(peer) as bench:
        can = bench.network.capabilities
        if can.operations <= {Operation.SMS}:
            raise NotProven("a message is sent without an amount")
        ways = {
            Source.SUBMIT: can.succeeds_at_once,
            Source.STATUS: can.has_status,
            Source.NOTIFICATION: can.trust is NotificationTrust.SIGNED,
        }
        compared = {source for source, name in can.always_sent if name is Field.AMOUNT}
        for source in (source for source, is_used in ways.items() if is_used):
            wrong = (-_CENT, _CENT) if source in compared else ()
            for amount, change in product(_ODD, (Decimal(0), *wrong)):
                await _counts(bench, source, amount, amount + change)
    if not compared:
        raise NotProven(
            "the network repeats no amount, so a success of another one is not noticed; compare "
            "its statements, with `sandbox-sim reconcile`"
        )


async def _counts(bench: Bench, source: Source, amount: Decimal, said: Decimal) -> None:
    """A success counts for a request of this amount if it says this amount, and not otherwise."""
    request = bench.request(reference=f"reference {source} {amount} {said}", amount=amount)
    echo = _echo(request)._replace(amount=said)
    report = await _reported(bench, source, Decided(request, Outcome.SUCCEEDED, echo))
    if report is None:
        return
    judged = apply(bench.attempt(request), report, bench.terms, bench.clock.now())
    expected = Change.ENDED if said == amount else Change.MISMATCH
    sentence = f"a success of {said} by {source} counts as {judged.change} where {amount} was sent"
    require(judged.change is expected, sentence)


async def an_unknown_reference_is_unknown(peer: Peer) -> None:
    """A reference that the network does not know is UNKNOWN and not found, never failed."""
    async with opened(peer) as bench:
        _needs_status(bench)
        found = await bench.status(bench.request(reference="never-submitted"))
        require(found.outcome is Outcome.UNKNOWN, f"an unknown reference is read as {found}")
        require(not found.found, "an unknown reference is read as one that was found")


async def status_under_fault(peer: Peer, fault: Fault) -> None:
    """A status query that fails says nothing: neither a decision nor that nothing is there."""
    if fault not in peer.faults:
        raise NotProven(f"the other side cannot show {fault}")
    async with opened(peer) as bench:
        _needs_status(bench)
        request = bench.request()
        await bench.submit(request)
        peer.decide(Decided(request, Outcome.SUCCEEDED, _echo(request)))
        strays = peer.strays
        # A query may be repeated, so the fault is shown to each try.
        for _ in range(3):
            peer.misbehave(fault)
        found = await bench.ended(bench.status(request), fault)
        answered = fault is Fault.CLOSE_AFTER_ANSWER
        expected = Outcome.SUCCEEDED if answered else Outcome.UNKNOWN
        require(found.outcome is expected, f"{fault} is read as {found}")
        require(found.found, f"{fault} is read as a reference that is not known")
        require(peer.strays == strays, f"{fault}: the redirect was followed")
        require(bench.arrived(request) == 1, f"{fault}: a status query submitted again")


async def success_about_something_else_does_not_count(peer: Peer) -> None:
    """A success with another, or without a field that is always sent, leaves the attempt open."""
    async with opened(peer) as bench:
        declared = sorted(bench.network.capabilities.always_sent)
        if not declared:
            raise NotProven("the network declares no field that it always sends")
        for source, name in declared:
            for what, value in (("wrong", _WRONG[name]), ("missing", None)):
                request = bench.request(reference=f"reference {source} {name} {what}")
                echo = Echo(**{**_echo(request)._asdict(), name: value})
                report = await _reported(bench, source, Decided(request, Outcome.SUCCEEDED, echo))
                if report is None:
                    continue
                judged = apply(bench.attempt(request), report, bench.terms, bench.clock.now())
                said = f"a success by {source} counts although its {name} is {what}"
                require(judged.change is Change.MISMATCH, said)


async def _reported(bench: Bench, source: Source, decided: Decided) -> Report | None:
    """The report of a decision by this way; None where it does not come so."""
    peer = bench.peer
    if source is Source.SUBMIT and isinstance(peer, DecidingPeer) and peer.decide_at_once(decided):
        return (await bench.submit(decided.request)).report
    if source is Source.STATUS:
        await bench.submit(decided.request)
        peer.decide(decided)
        return (await bench.status(decided.request)).report
    if source is Source.NOTIFICATION:
        raw = peer.notification(decided, Signature.GOOD)
        # Without a field it may be unreadable, and then it does not count either.
        with contextlib.suppress(UnreadableNotification):
            return None if raw is None else _read(bench, raw).report
    return None


async def only_the_right_signature_is_verified(peer: Peer) -> None:
    """A signature that is absent, wrong, of another key or over other bytes proves nothing."""
    async with opened(peer) as bench:
        signed = bench.network.capabilities.trust is NotificationTrust.SIGNED
        request = bench.request()
        for signature in Signature:
            decided = Decided(request, Outcome.SUCCEEDED, _echo(request))
            raw = _sent(bench, decided, signature)
            expected = signed and signature is Signature.GOOD
            require(
                bench.network.verify(raw) is expected,
                f"a notification with a signature that is {signature} is "
                + ("not verified" if expected else "verified"),
            )


async def a_changed_notification_is_not_verified(peer: Peer) -> None:
    """The signature is over every byte of the body."""
    async with opened(peer) as bench:
        request = bench.request()
        raw = _sent(bench, Decided(request, Outcome.FAILED, _echo(request)), Signature.GOOD)
        for changed in (raw.body + b" ", b" " + raw.body, raw.body[:-1], b""):
            require(
                not bench.network.verify(raw._replace(body=changed)),
                "a notification whose body was changed is verified",
            )


async def a_notification_names_its_attempt(peer: Peer) -> None:
    """Each outcome is read right, and names the attempt by one of its three names."""
    async with opened(peer) as bench:
        for outcome in (Outcome.SUCCEEDED, Outcome.FAILED):
            request = bench.request()
            found = _notified(bench, Decided(request, outcome, _echo(request)))
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            named = found.attempt_id == request.attempt_id or found.reference == request.reference
            require(named or found.network_id, f"{found} names no attempt")


async def notifications_in_any_order_end_the_same(peer: Peer) -> None:
    """Before the answer, twice and against each other: one end, and a contradiction is noticed."""
    async with opened(peer) as bench:
        request = bench.request()
        succeeded = _notified(bench, Decided(request, Outcome.SUCCEEDED, _echo(request)))
        failed = _notified(bench, Decided(request, Outcome.FAILED, _echo(request)))
        answer = (await bench.submit(request)).report
        told = bench.attempt(request)
        changes = []
        for report in (succeeded.report, answer, succeeded.report, failed.report, failed.report):
            told, change = apply(told, report, bench.terms, bench.clock.now())
            changes.append(change)
        expected = [
            *(Change.ENDED, Change.NOTHING, Change.NOTHING),
            *(Change.CONTRADICTION, Change.NOTHING),
        ]
        require(changes == expected, f"the notifications change {changes}")
        require(told.outcome is Outcome.SUCCEEDED, f"the attempt ends as {told.outcome}")


async def a_reversal_is_read_right(peer: Peer) -> None:
    """A payment that the network took back after its success is REVERSED, once."""
    async with opened(peer) as bench:
        if not bench.network.capabilities.reports_reversals:
            raise NotProven("the network declares no reversals (reports_reversals)")
        _needs_status(bench)
        request = bench.request()
        await bench.submit(request)
        told, changes = bench.attempt(request), []
        for outcome in (Outcome.SUCCEEDED, Outcome.REVERSED, Outcome.REVERSED):
            peer.decide(Decided(request, outcome, _echo(request)))
            found = await bench.status(request, _DAY)
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            told, change = apply(told, found.report, bench.terms, bench.clock.now())
            changes.append(change)
        expected = [Change.ENDED, Change.REVERSED, Change.NOTHING]
        require(changes == expected, f"a success and its reversal change {changes}")


async def what_is_unreadable_is_called_so(peer: Peer) -> None:
    """What is not in the form of the network raises `UnreadableNotification`, not quoted in it."""
    async with opened(peer) as bench:
        request = bench.request()
        await bench.submit(request)
        raw = _sent(bench, Decided(request, Outcome.SUCCEEDED, _echo(request)), Signature.GOOD)
        private = f'"{" ".join((CANARY_CARD, request.party, *peer.secrets))}'.encode()
        for body in (*_UNREADABLE, private):
            try:
                bench.parse(raw._replace(body=body))
            except UnreadableNotification:
                continue
            raise Disproved(f"parse takes {body!r}")


def _needs_status(bench: Bench) -> None:
    if not bench.network.capabilities.has_status:
        raise NotProven("the network cannot be asked for the status")


def _sent(bench: Bench, decided: Decided, signature: Signature) -> RawNotification:
    raw = bench.peer.notification(decided, signature)
    if raw is None:
        raise NotProven("the network sends no notification by HTTP")
    return raw


def _notified(bench: Bench, decided: Decided) -> Notification:
    """The notification of a decision, read."""
    return _read(bench, _sent(bench, decided, Signature.GOOD))


def _read(bench: Bench, raw: RawNotification) -> Notification:
    found = bench.parse(raw._replace(received_at=bench.clock.now()))
    require(len(found) == 1, f"one notification is read as {len(found)}")
    return found[0]
