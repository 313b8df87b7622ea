"""SMS: every acknowledged send is in the history once, and the units agree. D22, D25, D26."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from chaos.facts import Facts, Message, Send, opening_units
from chaos.proof.claim import Claim, claim

ByText = Mapping[str, Sequence[Message]]


def claims(facts: Facts) -> Iterator[Claim]:
    """The claims about sends, messages and units."""
    messages = [message for kept, _ in facts.final.histories.values() for message in kept]
    by_text: dict[str, list[Message]] = {}
    for message in messages:
        by_text.setdefault(message.text, []).append(message)
    taken = [send for send in facts.sends if send.acknowledged]
    unknown = [send for send in facts.sends if not send.asked.known]
    there = sum(1 for send in unknown if by_text.get(send.text))
    yield claim(
        f"{len(taken):,} acknowledged sends are in the history exactly once",
        (problem for send in taken for problem in _of_taken(send, by_text)),
    )
    yield claim(
        f"{len(unknown):,} sends without an answer are there completely ({there:,}) or not at all",
        (problem for send in unknown for problem in _of_unknown(send, by_text)),
    )
    yield claim(
        f"{len(messages):,} messages in the history, none twice, none that was never sent",
        _strangers(facts, messages),
    )
    refunded = sum(1 for message in messages if message.status == "REFUNDED")
    yield claim(
        f"every message has settled: {len(messages) - refunded:,} SENT, {refunded:,} REFUNDED",
        (problem for message in messages for problem in _unsettled(message)),
    )
    services = len(facts.final.balances)
    yield claim(
        f"balance = opening - charged + refunded for each of {services:,} services",
        _wrong_balances(facts),
    )
    seen = sum(len(history.messages) for history in facts.histories)
    yield claim(
        f"{seen:,} messages seen in histories on the way are still there and did not change back",
        _gone_back(facts, messages),
    )


def _of_taken(send: Send, by_text: ByText) -> Iterator[str]:
    found = by_text.get(send.text, ())
    if not found:
        yield f"lost: {_name(send)} was acknowledged and is not in the history"
        return
    yield from _incomplete(send, found)
    references = {m.batch_id if send.bulk else m.processing_id for m in found}
    if references != {send.reference}:
        yield f"{_name(send)} was acknowledged and the history names it {_few(references)}"


def _of_unknown(send: Send, by_text: ByText) -> Iterator[str]:
    found = by_text.get(send.text, ())
    if not found:
        return
    yield from _incomplete(send, found)
    batches = {message.batch_id for message in found}
    if len(batches) > 1 or (None in batches) is send.bulk:
        yield f"{_name(send)} is in the history under the batches {_few(batches)}"


def _incomplete(send: Send, found: Sequence[Message]) -> Iterator[str]:
    """Check that each recipient has as many messages as it was named, at the right units."""
    wanted, got = Counter(send.recipients), Counter(m.customer_number for m in found)
    for number in wanted.keys() | got.keys():
        if wanted[number] != got[number]:
            ids = _few(m.processing_id for m in found if m.customer_number == number)
            yield f"{_name(send)} has {got[number]} of {wanted[number]} messages to {number}: {ids}"
    for message in found:
        if message.units != send.units:
            yield f"{message.processing_id} was charged {message.units} units, not {send.units}"


def _strangers(facts: Facts, messages: Sequence[Message]) -> Iterator[str]:
    ids = Counter(message.processing_id for message in messages)
    yield from (f"{i} is in the history {n} times" for i, n in ids.items() if n > 1)
    sends = {send.text: send for send in facts.sends}
    for service_id, (kept, total) in facts.final.histories.items():
        if len(kept) != total:
            yield f"service {service_id}: the pages have {len(kept)} messages and tell {total}"
        for message in kept:
            send = sends.get(message.text)
            if send is None or send.service_id != service_id:
                yield f"{message.processing_id} of service {service_id} was never sent"
            elif send.asked.known and not send.acknowledged:
                yield f"{message.processing_id} is there, and {_name(send)} got {send.asked.code}"


def _unsettled(message: Message) -> Iterator[str]:
    right = "REFUNDED" if message.customer_number.endswith("9") else "SENT"
    if message.status != right:
        yield f"{message.processing_id} to {message.customer_number} is {message.status}"


def _wrong_balances(facts: Facts) -> Iterator[str]:
    for service_id, balance in facts.final.balances.items():
        kept, _ = facts.final.histories.get(service_id, ([], 0))
        charged = sum(message.units for message in kept)
        refunded = sum(message.units for message in kept if message.status == "REFUNDED")
        opening = opening_units(service_id)
        if balance != opening - charged + refunded:
            sums = f"{opening} - {charged} + {refunded} = {opening - charged + refunded}"
            yield f"service {service_id} has {balance} units, and {sums}"


def _gone_back(facts: Facts, messages: Sequence[Message]) -> Iterator[str]:
    now = {message.processing_id: message for message in messages}
    for history in facts.histories:
        for seen in history.messages:
            kept = now.get(seen.processing_id)
            if kept is None:
                yield f"{seen.processing_id} was seen in the history and is gone"
            elif seen.status not in {"ACKNOWLEDGED", kept.status}:
                yield f"{seen.processing_id} was seen {seen.status} and is {kept.status}"


def _name(send: Send) -> str:
    kind = "bulk" if send.bulk else "send"
    return f"{kind} {send.reference or send.text[:24]} of service {send.service_id}"


def _few(ids: Iterable[str | None]) -> str:
    found = sorted(map(str, ids))
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return ", ".join(found[:4]) + more or "none"
