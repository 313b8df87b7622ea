"""What an adapter makes of the words of its network: status answers and notifications."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

from sandbox_sim.domain.networks.attempts import Change, apply
from sandbox_sim.domain.networks.notifications import NotificationTrust, RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import Echo, Field, Report, Source
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports.network import Notification, SubmitRequest, UnreadableNotification
from sandbox_sim.testing.network_contract.bench import (
    Bench,
    NotProven,
    opened,
    require,
)
from sandbox_sim.testing.network_contract.peer import Decided, Fault, Peer, Signature

# How an echo is changed in one field.
_WRONG: Final[Mapping[Field, Callable[[Echo], Echo]]] = {
    Field.REFERENCE: lambda echo: echo._replace(reference="another-reference"),
    Field.AMOUNT: lambda echo: echo._replace(amount=Decimal("10.51")),
    Field.CURRENCY: lambda echo: echo._replace(currency="USD"),
    Field.OPERATION: lambda echo: echo._replace(operation=Operation.BALANCE),
}
_MISSING: Final[Mapping[Field, Callable[[Echo], Echo]]] = {
    Field.REFERENCE: lambda echo: echo._replace(reference=None),
    Field.AMOUNT: lambda echo: echo._replace(amount=None),
    Field.CURRENCY: lambda echo: echo._replace(currency=None),
    Field.OPERATION: lambda echo: echo._replace(operation=None),
}
_DAY: Final = timedelta(days=1)
# What a network says of an attempt, and the age of the attempt.
_SAID: Final[Mapping[Outcome, timedelta]] = {
    Outcome.PENDING: timedelta(0),
    Outcome.SUCCEEDED: _DAY,
    Outcome.FAILED: _DAY,
}
_UNREADABLE: Final = (b"", b"[]", b"{}", b"null", b"\xff\xfe", b'{"status"', b"<xml/>")


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
        call = bench.status(request)
        silent = fault is Fault.SILENCE
        found = await (bench.expire_unanswered(call) if silent else call)
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
            for what, change in (("wrong", _WRONG[name]), ("missing", _MISSING[name])):
                request = bench.request(reference=f"reference {source} {name} {what}")
                echo = change(_echo(request))
                report = await _reported(bench, source, Decided(request, Outcome.SUCCEEDED, echo))
                if report is None:
                    continue
                judged = apply(bench.attempt(request), report, bench.terms, bench.clock.now())
                said = f"a {name} that is {what} by {source} counts as a success"
                require(judged.change is Change.MISMATCH, said)


async def _reported(bench: Bench, source: Source, decided: Decided) -> Report | None:
    """The report of a decision by this way; None where it does not come so."""
    if source is Source.STATUS:
        await bench.submit(decided.request)
        bench.peer.decide(decided)
        return (await bench.status(decided.request)).report
    if source is Source.NOTIFICATION:
        try:
            found = _notified(bench, decided)
        except UnreadableNotification:
            return None  # without this field it is none, so it does not count either
        return None if found is None else found.report
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
            if found is None:
                raise NotProven("the network sends no notification by HTTP")
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            named = found.attempt_id == request.attempt_id or found.reference == request.reference
            require(named or found.network_id, f"{found} names no attempt")


async def notifications_in_any_order_end_the_same(peer: Peer) -> None:
    """Before the answer, twice and against each other: one end, and a contradiction is noticed."""
    async with opened(peer) as bench:
        request = bench.request()
        succeeded = _notified(bench, Decided(request, Outcome.SUCCEEDED, _echo(request)))
        failed = _notified(bench, Decided(request, Outcome.FAILED, _echo(request)))
        if succeeded is None or failed is None:
            raise NotProven("the network sends no notification by HTTP")
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


async def what_is_unreadable_is_called_so(peer: Peer) -> None:
    """A notification that is not in the form of the network raises `UnreadableNotification`."""
    async with opened(peer) as bench:
        request = bench.request()
        raw = _sent(bench, Decided(request, Outcome.SUCCEEDED, _echo(request)), Signature.GOOD)
        for body in _UNREADABLE:
            try:
                bench.network.parse(raw._replace(body=body))
            except UnreadableNotification:
                continue
            except Exception as error:
                require(condition=False, sentence=f"parse raises {type(error).__name__}")
            require(condition=False, sentence=f"parse takes {body!r}")


def _needs_status(bench: Bench) -> None:
    if not bench.network.capabilities.has_status:
        raise NotProven("the network cannot be asked for the status")


def _sent(bench: Bench, decided: Decided, signature: Signature) -> RawNotification:
    raw = bench.peer.notification(decided, signature)
    if raw is None:
        raise NotProven("the network sends no notification by HTTP")
    return raw


def _notified(bench: Bench, decided: Decided) -> Notification | None:
    """The notification of a decision, read."""
    raw = bench.peer.notification(decided, Signature.GOOD)
    if raw is None:
        return None
    found = bench.network.parse(_received_now(raw, bench))
    require(len(found) == 1, f"one notification is read as {len(found)}")
    return found[0]


def _received_now(raw: RawNotification, bench: Bench) -> RawNotification:
    """The notification as it comes in now."""
    return raw._replace(received_at=bench.clock.now())
