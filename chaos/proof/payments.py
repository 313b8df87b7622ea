"""Payments: accepted ones send a callback, rejected ones do not. D15, D16, D18, D29."""

from collections.abc import Iterator, Mapping, Sequence

from chaos.facts import ACCEPTED, Delivery, Facts, Payment, Status
from chaos.proof.claim import Claim, claim

Arrivals = Mapping[str, Sequence[Delivery]]

# "About 15 minutes" (sandbox.8): found before this range, gone after it, either within it.
SURELY_FOUND_S, SURELY_GONE_S = 14.5 * 60, 15.5 * 60
# The progress of a payment, from the answer to a status query: absent, pending, decided.
_ABSENT, _PENDING, _DECIDED = range(3)
_RANK = {"002": _PENDING, "000": _DECIDED, "001": _DECIDED, "003": _DECIDED}
_OF_CODE = {"202": "000", "000": "000", "015": "001"}


def claims(facts: Facts) -> Iterator[Claim]:
    """The claims about payments and their callbacks."""
    arrivals = facts.arrivals()
    accepted = [payment for payment in facts.payments if payment.accepted]
    unknown = [payment for payment in facts.payments if not payment.asked.known]
    rejected = len(facts.payments) - len(accepted) - len(unknown)
    there = sum(1 for payment in unknown if _found(facts, payment))
    yield claim(
        f"{len(accepted):,} accepted payments' callbacks arrived and were acknowledged",
        (problem for payment in accepted for problem in _undelivered(payment, arrivals)),
    )
    yield claim(
        f"{len(unknown):,} payments without an answer are there with callback ({there:,}) or not",
        (problem for payment in unknown for problem in _halfway(payment, facts, arrivals)),
    )
    yield claim(
        f"no callback for any of {rejected:,} rejected payments, or for unknown payments",
        _uncalled_for(facts, arrivals),
    )
    yield claim(
        f"{len(arrivals):,} payments have one trans_id each, over retries and in their status",
        _changed_ids(facts, arrivals),
    )
    yield claim(
        f"{len(facts.deliveries):,} deliveries say 000/SUCCESS and are signed with the secret key",
        (
            f"callback of {d.trans_ref}: {d.trans_status}{'' if d.genuine else ', not genuine'}"
            for d in facts.deliveries
            if not d.genuine or d.trans_status != "000/SUCCESS"
        ),
    )
    yield claim(
        f"{len(facts.final.statuses):,} statuses are in the end what the answers promised",
        (problem for payment in facts.payments for problem in _wrong_end(payment, facts)),
    )
    yield claim(
        f"{len(facts.statuses):,} status answers on the way never fell behind what was known",
        _gone_back(facts, arrivals),
    )


def _found(facts: Facts, payment: Payment) -> bool:
    final = facts.final.statuses.get(payment.transaction_id)
    return final is not None and final.status is not None


def _undelivered(payment: Payment, arrivals: Arrivals) -> Iterator[str]:
    came = arrivals.get(payment.transaction_id, ())
    if not came:
        yield f"{_name(payment)} was accepted and its callback never arrived"
    elif not any(delivery.taken for delivery in came):
        yield f"{_name(payment)}: {len(came)} deliveries were refused and no other came"


def _halfway(payment: Payment, facts: Facts, arrivals: Arrivals) -> Iterator[str]:
    final = facts.final.statuses.get(payment.transaction_id)
    came = arrivals.get(payment.transaction_id, ())
    if final is None:
        yield f"{_name(payment)}: its status is not known"
    elif final.status == "000" and not any(delivery.taken for delivery in came):
        yield f"{_name(payment)} has status 000 and its callback was not acknowledged"
    elif final.status is None and came and not _old(payment, final):
        yield f"{_name(payment)} is not found and its callback arrived"


def _uncalled_for(facts: Facts, arrivals: Arrivals) -> Iterator[str]:
    payments = {payment.transaction_id: payment for payment in facts.payments}
    for ref in arrivals:
        payment = payments.get(ref)
        if payment is None:
            yield f"a callback came for {ref}, a payment that was never sent"
        elif payment.asked.known and not payment.accepted:
            yield f"a callback came for {_name(payment)}, which was answered {payment.asked.code}"
        elif not payment.asked.known and ACCEPTED.isdisjoint(payment.asked.expected):
            yield f"a callback came for {_name(payment)}, which the rules reject"


def _changed_ids(facts: Facts, arrivals: Arrivals) -> Iterator[str]:
    owners: dict[str, str] = {}
    for ref, came in arrivals.items():
        ids = list(dict.fromkeys(delivery.trans_id for delivery in came))
        if len(ids) > 1:
            yield f"callbacks of {ref} came with the trans_ids {', '.join(ids)}"
        for trans_id in ids:
            if owners.setdefault(trans_id, ref) != ref:
                yield f"trans_id {trans_id} stands for {owners[trans_id]} and for {ref}"
    for status in (*facts.statuses, *facts.final.statuses.values()):
        came = arrivals.get(status.transaction_id, ())
        if came and status.network_id not in {None, came[0].trans_id}:
            yield (
                f"status of {status.transaction_id} has network_transaction_id"
                f" {status.network_id} and its callback trans_id {came[0].trans_id}"
            )


def _wrong_end(payment: Payment, facts: Facts) -> Iterator[str]:
    final = facts.final.statuses.get(payment.transaction_id)
    if final is None:
        yield f"{_name(payment)}: its status is not known"
        return
    if payment.asked.known:
        allowed = {_OF_CODE.get(payment.asked.code or "")}
    else:
        allowed = {None, *(_OF_CODE.get(code) for code in payment.asked.expected)}
    if final.asked.ended - payment.asked.began > SURELY_GONE_S:
        allowed = {None}
    elif _old(payment, final):
        allowed.add(None)
    if final.status not in allowed:
        wanted = " or ".join(sorted(status or "not found" for status in allowed))
        yield f"{_name(payment)} has status {final.status or 'not found'}, not {wanted}"


def _gone_back(facts: Facts, arrivals: Arrivals) -> Iterator[str]:
    known = _known(facts, arrivals)
    began = {payment.transaction_id: payment.asked.began for payment in facts.payments}
    for answer in (*facts.statuses, *facts.final.statuses.values()):
        ref = answer.transaction_id
        age = answer.asked.ended - began.get(ref, 0.0)
        if not answer.asked.known or age > SURELY_FOUND_S:
            continue
        rank = _RANK.get(answer.status or "", _ABSENT)
        for at, least, why in known.get(ref, ()):
            if at <= answer.asked.began and rank < least:
                later = (answer.asked.began - at) * 1000
                found = answer.status or "not found"
                yield f"{ref} was {found} when asked {later:.0f} ms after {why}"
                break


def _known(facts: Facts, arrivals: Arrivals) -> dict[str, list[tuple[float, int, str]]]:
    """For each payment: the time from which its progress is known, the progress, and why."""
    known: dict[str, list[tuple[float, int, str]]] = {}
    for payment in facts.payments:
        code = payment.asked.code or ""
        if code in _OF_CODE:
            least = _DECIDED if code == "015" else _PENDING
            fact = (payment.asked.ended, least, f"it was answered {code}")
            known.setdefault(payment.transaction_id, []).append(fact)
    for ref, came in arrivals.items():
        known.setdefault(ref, []).append((came[0].at, _DECIDED, "its callback arrived"))
    for answer in facts.statuses:
        if answer.status is not None:
            fact = (answer.asked.ended, _RANK[answer.status], f"it was {answer.status}")
            known.setdefault(answer.transaction_id, []).append(fact)
    return known


def _old(payment: Payment, final: Status) -> bool:
    return final.asked.ended - payment.asked.began > SURELY_FOUND_S


def _name(payment: Payment) -> str:
    return f"payment {payment.transaction_id} of service {payment.service_id}"
