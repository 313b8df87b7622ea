"""The proofs of the contract.

A submit arrives exactly once and unchanged, and has the right outcome under every fault; after
every proof, `bench.open_bench` checks what arrived. Status answers and notifications are read
correctly. An adapter must not block the event loop.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from itertools import product
from typing import Final

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Notification, SubmitRequest, UnreadableNotification
from sandbox_sim.records.attempts import Change, apply_report
from sandbox_sim.records.exchanges import NotificationTrust, RawNotification
from sandbox_sim.records.reports import Echo, Field, Outcome, Report, Source, differences
from sandbox_sim.testing.network_contract.bench import (
    ACCEPTED,
    Bench,
    Disproved,
    NotProven,
    open_bench,
    require,
)
from sandbox_sim.testing.network_contract.peer import (
    CANARY_CARD,
    Address,
    Decided,
    DecidingPeer,
    Fault,
    NotifyingPeer,
    Peer,
    Signature,
    with_card,
)

# The fields of a request that are compared if they arrive, each with its name in `Submitted`.
FIELDS: Final = {"currency": "currency", "operation": "operations", "party": "party"}

_CONCURRENT: Final = 20


async def the_field_arrives(peer: Peer, field: str) -> None:
    """The field arrives unchanged, with each operation and currency."""
    async with open_bench(peer) as bench:
        capabilities, has_arrived, missing = bench.network.capabilities, False, set()
        pairs = product(sorted(capabilities.operations), sorted(capabilities.currencies))
        for number, (operation, currency) in enumerate(pairs):
            request = replace(bench.numbered(number, operation), currency=currency)
            is_sms_unit = field == "currency" and operation is Operation.SMS
            if is_sms_unit or not getattr(request, field) or capabilities.objection(request):
                continue
            await bench.submit(request)
            submits = (each for each in peer.submits if each.reference == request.reference)
            arrived = [bool(getattr(each, FIELDS[field])) for each in submits]
            has_arrived |= any(arrived)
            missing |= set() if all(arrived) else {operation}
    if not has_arrived:
        raise NotProven(f"a submit has no {field} for the other side; check a real request")
    require(not missing, f"the {field} does not arrive with {', '.join(sorted(missing))}")


async def twenty_submits_at_once_are_not_mixed(peer: Peer) -> None:
    """Twenty different submits at once all arrive, and each gets its own answer."""
    async with open_bench(peer) as bench:
        requests = [_varied_request(bench, number) for number in range(_CONCURRENT)]
        results = await asyncio.gather(*map(bench.submit, requests))
        for request, result in zip(requests, results, strict=True):
            require(result.outcome in ACCEPTED, f"one of twenty at once ends as {result}")
            arrived = bench.arrived(request)
            require(arrived == 1, "one of twenty at once does not arrive exactly once")
            wrong = differences(result.report, bench.attempt(request).sent, frozenset())
            require(not wrong, f"one of twenty at once gets the answer of another: {wrong}")


async def the_network_accepts_a_repeat_once(peer: Peer) -> None:
    """Only the operator of the network knows, so this is never proven."""
    async with open_bench(peer) as bench:
        within = bench.network.capabilities.repeats_within
    if within is None:
        raise NotProven("the capabilities declare that repeats are not accepted")
    raise NotProven(
        "ask the operator of the network whether a second request with the same reference within "
        f"{within.total_seconds():g} s is the same payment, for each operation, also while the "
        "first one is in progress"
    )


def _varied_request(bench: Bench, number: int) -> SubmitRequest:
    """The request with this number; the operation and, if possible, the currency vary."""
    capabilities = bench.network.capabilities
    operations, currencies = sorted(capabilities.operations), sorted(capabilities.currencies)
    request = bench.numbered(number, operations[number % len(operations)])
    in_another = replace(request, currency=currencies[number % len(currencies)])
    is_large = request.operation is bench.peer.large_operation
    return in_another if is_large and not capabilities.objection(in_another) else request


_UNKNOWN: Final = frozenset({Outcome.UNKNOWN})

# For each fault, the outcomes that are allowed, and how many submits must arrive.
EXPECTED: Final[Mapping[Fault, tuple[frozenset[Outcome], int]]] = {
    **dict.fromkeys(Fault, (_UNKNOWN, 1)),
    Fault.CLOSE_BEFORE_READ: (_UNKNOWN, 0),
    Fault.CLOSE_AFTER_ANSWER: (ACCEPTED, 1),
    Fault.CUT_JSON: (_UNKNOWN | ACCEPTED, 1),  # the HTTP status alone may mean acceptance
    Fault.TOO_MANY_REQUESTS: (_UNKNOWN | {Outcome.REFUSED}, 1),
}


async def every_declared_operation_arrives_once(peer: Peer) -> None:
    """Each declared operation is accepted, and arrives exactly once with its reference."""
    async with open_bench(peer) as bench:
        for number, operation in enumerate(sorted(bench.network.capabilities.operations)):
            request = bench.request(operation, reference=f"reference-{number}")
            result = await bench.submit(request)
            require(result.outcome in ACCEPTED, f"{operation} ends as {result}")
            require(bench.arrived(request) == 1, f"{operation} arrives {bench.arrived(request)}x")


async def nothing_undeclared_is_sent(peer: Peer) -> None:
    """A request that the capabilities do not declare is NOT_SENT, and does not arrive."""
    async with open_bench(peer) as bench:
        capabilities = bench.network.capabilities
        requests = [bench.request(currency="XXX")]
        requests += [
            replace(bench.request(), operation=operation)
            for operation in Operation
            if operation not in capabilities.operations
        ]
        if capabilities.nws:
            requests.append(bench.request(nw="no such network"))
        for request in requests:
            result = await bench.submit(request)
            require(result.outcome is Outcome.NOT_SENT, f"{request} ends as {result}")
        require(not peer.submits, f"{len(peer.submits)} submits arrived")


async def no_connection_is_not_sent(peer: Peer) -> None:
    """Without a connection, the outcome is NOT_SENT and a network fault."""
    await _require_not_sent(peer, Address.CLOSED)


async def broken_tls_is_not_sent(peer: Peer) -> None:
    """If TLS fails, the outcome is NOT_SENT and a network fault."""
    await _require_not_sent(peer, Address.BROKEN_TLS)


async def _require_not_sent(peer: Peer, address: Address) -> None:
    if address not in peer.addresses:
        raise NotProven(f"the other side has no address of the kind {address}")
    async with open_bench(peer, address) as bench:
        result = await bench.submit(bench.request())
        require(result.outcome is Outcome.NOT_SENT, f"{address} ends as {result}")
        require(result.network_fault, "network_fault is false, so the circuit breaker stays closed")
        require(not peer.submits, "a submit arrived")


async def submit_under_fault(peer: Peer, fault: Fault) -> None:
    """The outcome is unknown unless the answer is clear, and the request is not sent again."""
    if fault not in peer.faults:
        raise NotProven(f"the other side does not support {fault}")
    outcomes, arrived = EXPECTED[fault]
    async with open_bench(peer) as bench:
        await bench.get_token()
        before, strays = peer.connections, peer.strays
        peer.misbehave(fault)
        request = bench.request()
        result = await bench.result_under_fault(bench.submit(request), fault)
        require(result.outcome in outcomes, f"{fault} ends as {result}")
        found = bench.arrived(request)
        require(found == arrived, f"{fault}: {found} submits arrived instead of {arrived}")
        require(peer.connections - before <= 1, f"{fault}: the request was sent again")
        require(peer.strays == strays, f"{fault}: the redirect was followed")


async def amounts_arrive_exactly(peer: Peer) -> None:
    """An amount arrives exactly, also with odd cents and if a float cannot hold it."""
    async with open_bench(peer) as bench:
        if bench.network.capabilities.operations <= {Operation.SMS}:
            raise NotProven("messages have no amount")
        for text in ("0.01", "0.29", "10.37", "10.50", "19.99", "10000000000000001"):
            request = bench.request(
                peer.large_operation, reference=f"reference {text}", amount=Decimal(text)
            )
            await bench.submit(request)
            arrived = [e.amount for e in peer.submits if e.reference == request.reference]
            require(arrived == [Decimal(text)], f"{text} arrives as {arrived}")


async def a_repeat_is_the_same_request(peer: Peer) -> None:
    """A second submit with the same reference is neither refused nor failed."""
    async with open_bench(peer) as bench:
        if bench.network.capabilities.repeats_within is None:
            raise NotProven("the capabilities declare that repeats are not accepted")
        request = bench.request()
        await bench.submit(request)
        result = await bench.submit(replace(request, repeated=True))
        expected = ACCEPTED | {Outcome.UNKNOWN}
        require(result.outcome in expected, f"the repeat ends as {result}")
        require(bench.arrived(request) == 2, "the repeat does not have the same reference")


async def fifty_at_once_renew_a_token_once(peer: Peer) -> None:
    """If the token expired, fifty submits at once get one new token, and each arrives once."""
    if peer.tokens is None:
        raise NotProven("the network uses no tokens")
    async with open_bench(peer) as bench:
        await bench.get_token()
        peer.expire_tokens()
        before = peer.tokens
        requests = [bench.request(reference=f"reference-{number}") for number in range(50)]
        results = await asyncio.gather(*map(bench.submit, requests))
        require(
            all(result.outcome in ACCEPTED for result in results),
            f"some of fifty end as {sorted({result.outcome for result in results})}",
        )
        renewed = peer.tokens - before
        require(renewed == 1, f"fifty submits asked for {renewed} tokens")
        require(all(bench.arrived(request) == 1 for request in requests), "some arrive twice")


async def secrets_stay_secret(peer: Peer) -> None:
    """No secret, card number or customer is visible in the journal, log, results or tracebacks."""
    for address in sorted(peer.addresses):
        async with open_bench(peer, address) as bench:
            await bench.submit(with_card(bench.request()))
            await bench.health()
            require(bench.events.exchanges, "the adapter reported nothing to the journal")
    for fault in sorted(peer.faults - {Fault.SILENCE}):
        async with open_bench(peer) as bench:
            await bench.get_token()
            request = with_card(bench.request(reference=f"reference {fault.replace('_', ' ')}"))
            peer.misbehave(fault)
            await bench.submit(request)
            if bench.network.capabilities.has_status:
                peer.misbehave(fault)
                await bench.status(request)
            peer.misbehave(fault)
            await bench.health()


async def close_ends_everything(peer: Peer) -> None:
    """A close ends a running submit with the outcome UNKNOWN, and leaves no task."""
    if Fault.SILENCE not in peer.faults:
        raise NotProven("the other side always answers at once")
    async with open_bench(peer) as bench:
        await bench.get_token()
        peer.misbehave(Fault.SILENCE)
        request = bench.request()
        sending = asyncio.create_task(bench.submit(request))
        while not bench.arrived(request) and not sending.done():
            await bench.clock.pause(0)
        await bench.network.close()
        result = await sending
        require(result.outcome is Outcome.UNKNOWN, f"a submit ended by close ends as {result}")


async def health_submits_nothing(peer: Peer) -> None:
    """`health` returns also if there is no connection or no answer, and submits nothing."""
    async with open_bench(peer) as bench:
        require((await bench.health()).ok, "a network that answers is called not healthy")
        require(not peer.submits, "health submitted something")
    if Address.CLOSED in peer.addresses:
        async with open_bench(peer, Address.CLOSED) as bench:
            require(not (await bench.health()).ok, "a closed address is called healthy")
    if Fault.SILENCE in peer.faults:
        async with open_bench(peer) as bench:
            peer.misbehave(Fault.SILENCE)
            await bench.result_under_fault(bench.health(), Fault.SILENCE)


# Wrong values for the fields of an echo.
_WRONG_VALUES: Final[Mapping[Field, object]] = {
    Field.REFERENCE: "another-reference",
    Field.AMOUNT: Decimal("10.51"),
    Field.CURRENCY: "USD",
    Field.OPERATION: Operation.BALANCE,
}
_DAY: Final = timedelta(days=1)
# The outcomes in status answers, each with the age of the attempt in the query.
_STATUS_AGES: Final[Mapping[Outcome, timedelta]] = {
    Outcome.PENDING: timedelta(0),
    Outcome.SUCCEEDED: _DAY,
    Outcome.FAILED: _DAY,
}
_UNREADABLE: Final = (b"", b"[]", b"{}", b"null", b"\xff\xfe", b'{"status"', b"<xml/>")
# Amounts that a float or a single decimal would change, and the smallest difference.
_PRECISE_AMOUNTS: Final = tuple(map(Decimal, ("0.01", "0.29", "10.37", "19.99", "9999.95")))
_CENT: Final = Decimal("0.01")


def _echo(request: SubmitRequest) -> Echo:
    return Echo(request.reference, request.amount, request.currency, request.operation)


def _decided(request: SubmitRequest, outcome: Outcome) -> Decided:
    """The decision, with all fields of the request."""
    return Decided(request, outcome, _echo(request))


async def status_is_read_right(peer: Peer) -> None:
    """`status` returns pending, succeeded and failed correctly. Pending payments are new ones."""
    async with open_bench(peer) as bench:
        _require_status(bench)
        for outcome, age in _STATUS_AGES.items():
            request = bench.request(reference=f"reference {outcome}")
            await bench.submit(request)
            peer.decide(_decided(request, outcome))
            found = await bench.status(request, age)
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            require(found.found, f"{outcome} is read as an unknown reference")


async def twenty_status_queries_at_once_are_not_mixed(peer: Peer) -> None:
    """Each of twenty status queries at once gets its own answer."""
    async with open_bench(peer) as bench:
        _require_status(bench)
        outcomes = list(_STATUS_AGES)
        numbers = range(_CONCURRENT)
        sent = [(bench.numbered(each), outcomes[each % len(outcomes)]) for each in numbers]
        for request, outcome in sent:
            await bench.submit(request)
            peer.decide(_decided(request, outcome))
        calls = (bench.status(request, _STATUS_AGES[outcome]) for request, outcome in sent)
        for (request, outcome), found in zip(sent, await asyncio.gather(*calls), strict=True):
            require(found.outcome is outcome, f"one of twenty that is {outcome} is read as {found}")
            wrong = differences(found.report, bench.attempt(request).sent, bench.terms.always_sent)
            require(not wrong, f"one of twenty gets the answer of another: {wrong}")


async def a_decision_at_once_is_read_right(peer: Peer) -> None:
    """A submit succeeds only if its answer says so, and if the capabilities declare it."""
    async with open_bench(peer) as bench:
        declared = bench.network.capabilities.succeeds_at_once
        request = bench.request()
        decided = _decided(request, Outcome.SUCCEEDED)
        report = await _report_of(bench, Source.SUBMIT, decided)
        if report is None:
            raise NotProven(
                "the other side has no answer with a decision (decided_at_once); ask the operator "
                "of the network which answers are final"
                if declared
                else "the capabilities declare no success at once"
            )
        judged = apply_report(bench.attempt(request), report, bench.terms, bench.clock.now())
        ended = judged.change is Change.ENDED
        require(ended is declared, f"a success at once is read as {report}")
        only_taken = await bench.submit(bench.request(reference="only taken"))
        pending = only_taken.outcome is Outcome.PENDING
        require(pending, f"a request that is accepted and not decided ends as {only_taken}")


async def a_refusal_is_read_right(peer: Peer) -> None:
    """A definite refusal is REFUSED, with a response code for the client."""
    async with open_bench(peer) as bench:
        decided = Decided(bench.request(), Outcome.REFUSED)
        if not isinstance(peer, DecidingPeer) or not peer.decide_at_once(decided):
            raise NotProven(
                "the other side has no refusal (refused); ask the operator of the network which "
                "answers mean that a request is not accepted"
            )
        result = await bench.submit(decided.request)
        require(result.outcome is Outcome.REFUSED, f"a refusal is read as {result}")


async def a_confirmed_amount_counts_to_the_cent(peer: Peer) -> None:
    """A success counts if its amount is right; a difference of one cent is a mismatch."""
    async with open_bench(peer) as bench:
        capabilities = bench.network.capabilities
        if capabilities.operations <= {Operation.SMS}:
            raise NotProven("messages have no amount")
        sources = {
            Source.SUBMIT: capabilities.succeeds_at_once,
            Source.STATUS: capabilities.has_status,
            Source.NOTIFICATION: capabilities.trust is NotificationTrust.SIGNED,
        }
        compared = {source for source, name in capabilities.always_sent if name is Field.AMOUNT}
        for source in (source for source, is_used in sources.items() if is_used):
            wrong = (-_CENT, _CENT) if source in compared else ()
            for amount, change in product(_PRECISE_AMOUNTS, (Decimal(0), *wrong)):
                await _check_counted(bench, source, amount, amount + change)
    if not compared:
        raise NotProven(
            "the answers of the network have no amount, so a wrong one is not noticed; compare "
            "its statements with `sandbox-sim reconcile`"
        )


async def _check_counted(bench: Bench, source: Source, amount: Decimal, reported: Decimal) -> None:
    """Require that a success counts only if it reports the amount of the request."""
    request = bench.request(reference=f"reference {source} {amount} {reported}", amount=amount)
    echo = _echo(request)._replace(amount=reported)
    report = await _report_of(bench, source, Decided(request, Outcome.SUCCEEDED, echo))
    if report is None:
        return
    judged = apply_report(bench.attempt(request), report, bench.terms, bench.clock.now())
    expected = Change.ENDED if reported == amount else Change.MISMATCH
    sentence = (
        f"a success of {reported} by {source} counts as {judged.change} where {amount} was sent"
    )
    require(judged.change is expected, sentence)


async def an_unknown_reference_is_unknown(peer: Peer) -> None:
    """An unknown reference is UNKNOWN and not found, never failed."""
    async with open_bench(peer) as bench:
        _require_status(bench)
        found = await bench.status(bench.request(reference="never-submitted"))
        require(found.outcome is Outcome.UNKNOWN, f"an unknown reference is read as {found}")
        require(not found.found, "an unknown reference is read as one that was found")


async def status_under_fault(peer: Peer, fault: Fault) -> None:
    """A failed status query is UNKNOWN: neither a decision nor an unknown reference."""
    if fault not in peer.faults:
        raise NotProven(f"the other side does not support {fault}")
    async with open_bench(peer) as bench:
        _require_status(bench)
        request = bench.request()
        await bench.submit(request)
        peer.decide(_decided(request, Outcome.SUCCEEDED))
        strays = peer.strays
        # A query may be repeated, so the fault applies to each try.
        for _ in range(3):
            peer.misbehave(fault)
        found = await bench.result_under_fault(bench.status(request), fault)
        answered = fault is Fault.CLOSE_AFTER_ANSWER
        expected = Outcome.SUCCEEDED if answered else Outcome.UNKNOWN
        require(found.outcome is expected, f"{fault} is read as {found}")
        require(found.found, f"{fault} is read as an unknown reference")
        require(peer.strays == strays, f"{fault}: the redirect was followed")
        require(bench.arrived(request) == 1, f"{fault}: a status query submitted again")


async def success_about_something_else_does_not_count(peer: Peer) -> None:
    """A success in which an always-sent field is wrong or missing leaves the attempt open."""
    async with open_bench(peer) as bench:
        declared = sorted(bench.network.capabilities.always_sent)
        if not declared:
            raise NotProven("the capabilities declare no field that is always sent")
        for source, name in declared:
            for what, value in (("wrong", _WRONG_VALUES[name]), ("missing", None)):
                request = bench.request(reference=f"reference {source} {name} {what}")
                echo = Echo(**{**_echo(request)._asdict(), name: value})
                report = await _report_of(bench, source, Decided(request, Outcome.SUCCEEDED, echo))
                if report is None:
                    continue
                attempt, now = bench.attempt(request), bench.clock.now()
                judged = apply_report(attempt, report, bench.terms, now)
                sentence = f"a success by {source} counts although its {name} is {what}"
                require(judged.change is Change.MISMATCH, sentence)


async def _report_of(bench: Bench, source: Source, decided: Decided) -> Report | None:
    """The report of a decision from this source; None if the source does not report it."""
    peer = bench.peer
    if source is Source.SUBMIT and isinstance(peer, DecidingPeer) and peer.decide_at_once(decided):
        return (await bench.submit(decided.request)).report
    if source is Source.STATUS:
        await bench.submit(decided.request)
        peer.decide(decided)
        return (await bench.status(decided.request)).report
    if source is Source.NOTIFICATION:
        raw = peer.notification(decided, Signature.GOOD)
        # If a field is missing, it may be unreadable, and then it does not count.
        with contextlib.suppress(UnreadableNotification):
            return None if raw is None else _parse_one(bench, raw).report
    return None


async def only_the_right_signature_is_verified(peer: Peer) -> None:
    """A signature that is absent, wrong, or made with other keys or bytes is not verified."""
    async with open_bench(peer) as bench:
        signed = bench.network.capabilities.trust is NotificationTrust.SIGNED
        request = bench.request()
        for signature in Signature:
            decided = _decided(request, Outcome.SUCCEEDED)
            raw = _raw_notification(bench, decided, signature)
            expected = signed and signature is Signature.GOOD
            require(
                bench.network.verify(raw) is expected,
                f"a notification with a signature that is {signature} is "
                + ("not verified" if expected else "verified"),
            )


async def a_changed_notification_is_not_verified(peer: Peer) -> None:
    """The signature covers every byte of the body."""
    async with open_bench(peer) as bench:
        request = bench.request()
        raw = _raw_notification(bench, _decided(request, Outcome.FAILED), Signature.GOOD)
        for changed in (raw.body + b" ", b" " + raw.body, raw.body[:-1], b""):
            is_verified = bench.network.verify(raw._replace(body=changed))
            require(not is_verified, "a notification whose body was changed is verified")


async def a_notification_names_its_attempt(peer: Peer) -> None:
    """Each outcome is read correctly, and names the attempt by one of its three identifiers."""
    async with open_bench(peer) as bench:
        for outcome in (Outcome.SUCCEEDED, Outcome.FAILED):
            request = bench.request()
            found = _parsed_notification(bench, _decided(request, outcome))
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            named = found.attempt_id == request.attempt_id or found.reference == request.reference
            require(named or found.network_id, f"{found} names no attempt")


async def notifications_in_any_order_end_the_same(peer: Peer) -> None:
    """Early, repeated and contradictory notifications end an attempt only once."""
    async with open_bench(peer) as bench:
        request = bench.request()
        succeeded = _parsed_notification(bench, _decided(request, Outcome.SUCCEEDED))
        failed = _parsed_notification(bench, _decided(request, Outcome.FAILED))
        answer = (await bench.submit(request)).report
        attempt = bench.attempt(request)
        changes = []
        for report in (succeeded.report, answer, succeeded.report, failed.report, failed.report):
            attempt, change = apply_report(attempt, report, bench.terms, bench.clock.now())
            changes.append(change)
        nothing = Change.NOTHING
        expected = [Change.ENDED, nothing, nothing, Change.CONTRADICTION, nothing]
        require(changes == expected, f"the notifications change {changes}")
        require(attempt.outcome is Outcome.SUCCEEDED, f"the attempt ends as {attempt.outcome}")


async def a_reversal_is_read_right(peer: Peer) -> None:
    """A payment that the network reverses after its success is REVERSED once."""
    async with open_bench(peer) as bench:
        if not bench.network.capabilities.reports_reversals:
            raise NotProven("the capabilities declare no reversals (reports_reversals)")
        _require_status(bench)
        request = bench.request()
        await bench.submit(request)
        attempt, changes = bench.attempt(request), []
        for outcome in (Outcome.SUCCEEDED, Outcome.REVERSED, Outcome.REVERSED):
            peer.decide(_decided(request, outcome))
            found = await bench.status(request, _DAY)
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            attempt, change = apply_report(attempt, found.report, bench.terms, bench.clock.now())
            changes.append(change)
        expected = [Change.ENDED, Change.REVERSED, Change.NOTHING]
        require(changes == expected, f"a success and its reversal change {changes}")


async def an_unreadable_notification_is_refused(peer: Peer) -> None:
    """A malformed notification raises `UnreadableNotification`, whose message does not quote it."""
    async with open_bench(peer) as bench:
        request = bench.request()
        await bench.submit(request)
        raw = _raw_notification(bench, _decided(request, Outcome.SUCCEEDED), Signature.GOOD)
        private = f'"{" ".join((CANARY_CARD, request.party, *peer.secrets))}'.encode()
        for body in (*_UNREADABLE, private):
            try:
                bench.parse(raw._replace(body=body))
            except UnreadableNotification:
                continue
            raise Disproved(f"parse accepts {body!r}")


def _require_status(bench: Bench) -> None:
    if not bench.network.capabilities.has_status:
        raise NotProven("the network has no status queries")


def _raw_notification(bench: Bench, decided: Decided, signature: Signature) -> RawNotification:
    raw = bench.peer.notification(decided, signature)
    if raw is None:
        raise NotProven("the network sends no notification by HTTP")
    return raw


def _parsed_notification(bench: Bench, decided: Decided) -> Notification:
    """The parsed notification of a decision."""
    return _parse_one(bench, _raw_notification(bench, decided, Signature.GOOD))


def _parse_one(bench: Bench, raw: RawNotification) -> Notification:
    found = bench.parse(raw._replace(received_at=bench.clock.now()))
    require(len(found) == 1, f"one notification is read as {len(found)}")
    return found[0]


async def an_event_names_its_attempt(peer: Peer) -> None:
    """Each outcome is reported once and correctly, and names the attempt or a part of a message."""
    notifying = _notifying_peer(peer)
    async with open_bench(peer) as bench:
        for number, outcome in enumerate((Outcome.SUCCEEDED, Outcome.FAILED), 1):
            request = bench.request(attempt_id=f"attempt-{number}", reference=f"reference-{number}")
            await bench.submit(request)
            is_acknowledged = await notifying.notify(Decided(request, outcome))
            require(is_acknowledged, f"a notification of {outcome} is not acknowledged")
            require(len(bench.events.notifications) == number, f"{outcome} is not reported once")
            found = bench.events.notifications[-1]
            require(found.outcome is outcome, f"{outcome} is read as {found}")
            named = {found.attempt_id, *_attempts_of_part(bench, found.part_id)}
            by_reference = found.reference == request.reference
            require(request.attempt_id in named or by_reference, f"{found} names no attempt")


async def an_event_is_acknowledged_after_it_is_saved(peer: Peer) -> None:
    """A notification is acknowledged after it is saved; meanwhile other work continues."""
    notifying = _notifying_peer(peer)
    async with open_bench(peer) as bench:
        request = bench.request()
        await bench.submit(request)
        bench.events.may_save.clear()
        notification = asyncio.create_task(notifying.notify(Decided(request, Outcome.SUCCEEDED)))
        while not bench.events.arrived:
            await bench.clock.pause(0)
        await bench.submit(bench.request(attempt_id="attempt-2", reference="another"))
        require(not notification.done(), "a notification is acknowledged before it is saved")
        bench.events.may_save.set()
        require(await notification, "a notification that was saved is not acknowledged")


def _notifying_peer(peer: Peer) -> NotifyingPeer:
    if not isinstance(peer, NotifyingPeer):
        raise NotProven("the network has no separate connection for notifications")
    return peer


def _attempts_of_part(bench: Bench, part_id: str) -> set[str]:
    return {each.attempt_id for each in bench.events.parts if part_id == each.network_id}


# The longest real time for which a call may block the event loop.
BLOCKED_S: Final = 0.25

# A busy machine may block the loop too, but not every time.
_TRIES: Final = 3

_BEAT_S: Final = 0.01


@dataclass
class Heartbeat:
    """longest_s: the longest time for which the event loop was blocked, in real time."""

    longest_s: float = 0.0


async def the_event_loop_is_not_blocked(peer: Peer) -> None:
    """No call blocks the event loop for 250 ms, even if the other side fails."""
    blocked = []
    for number in range(_TRIES):
        async with _measured_loop() as heartbeat, open_bench(peer) as bench:
            await _call_all(bench, number, heartbeat)
        if heartbeat.longest_s < BLOCKED_S:
            return
        blocked.append(f"{heartbeat.longest_s:.2f} s")
    raise Disproved(f"the event loop is blocked for {', '.join(blocked)}; await slow calls")


async def _call_all(bench: Bench, number: int, heartbeat: Heartbeat) -> None:
    """Call every method, with each fault except SILENCE; stop if the loop was blocked."""
    faults = (None, *sorted(bench.peer.faults - {Fault.SILENCE}))
    for each, fault in enumerate(faults):
        request = bench.numbered(number * len(faults) + each)
        if fault is not None:
            bench.peer.misbehave(fault)
        await bench.submit(request)
        if bench.network.capabilities.has_status:
            if fault is not None:
                bench.peer.misbehave(fault)
            await bench.status(request)
        if heartbeat.longest_s >= BLOCKED_S:
            return
    await bench.health()
    raw = bench.peer.notification(Decided(request, Outcome.SUCCEEDED), Signature.GOOD)
    if raw is not None:
        bench.network.verify(raw)
        with contextlib.suppress(UnreadableNotification):
            bench.parse(raw)


@asynccontextmanager
async def _measured_loop() -> AsyncIterator[Heartbeat]:
    """Measure for how long the event loop is blocked in the context."""
    heartbeat, clock = Heartbeat(), SystemClock()

    async def beat() -> None:
        while True:
            before = clock.monotonic()
            await clock.pause(_BEAT_S)
            heartbeat.longest_s = max(heartbeat.longest_s, clock.monotonic() - before)

    beats = asyncio.create_task(beat())
    await clock.pause(0)  # start the task
    try:
        yield heartbeat
        await clock.pause(_BEAT_S)  # include the last call
    finally:
        beats.cancel()
