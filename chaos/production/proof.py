"""The proof: a pure function from the observations to claims. D32, D39."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from chaos.facts import ACCEPTED
from chaos.production import operator_proof
from chaos.production.observations import (
    FAILED,
    PENDING,
    REFUSALS,
    SUCCEEDED,
    Charges,
    Observations,
    Purchase,
)
from chaos.proof.claim import Claim, claim
from chaos.proof.conduct import repeats

# The wallet that an operation fills or empties, and the operations that fill.
_WALLETS: Final = {
    "collect": "collection",
    "deposit": "payout",
    "payout": "payout",
    "refund": "collection",
}
_INTO: Final = {"collect", "deposit"}


def prove(seen: Observations) -> Sequence[Claim]:
    """Every claim, with and without violations."""
    proven = [*_payments(seen), *_charges(seen), *_callbacks(seen), *_books(seen)]
    acts = operator_proof.claims(seen) if seen.acts else ()
    return [*proven, *acts, *_of_momo(seen), _servers(seen)]


def _payments(seen: Observations) -> Iterator[Claim]:
    found = [each for each in seen.purchases if each.status is not None]
    yield claim(
        f"{len(found):,} payments ended as the network says, or as an operator decided",
        (problem for each in seen.purchases for problem in _wrong_end(each, seen)),
    )
    accepted = sum(each.accepted for each in seen.purchases)
    yield claim(
        f"{accepted:,} payments that were answered 202 are there",
        (_name(each) for each in seen.purchases if each.accepted and each.status is None),
    )
    refused = [each for each in seen.purchases if seen.is_refused(each)]
    yield claim(
        f"nothing is kept of {len(refused):,} payments that were refused",
        (f"{_name(each)} has status {each.status}" for each in refused if each.status is not None),
    )
    settled = sum(each.settled for each in seen.purchases)
    yield claim(
        f"{settled:,} payments waited for a person, among them {len(seen.forgotten):,} that the "
        "network forgot",
        (
            f"{_name(each)} was forgotten and ended without a person"
            for each in seen.forgotten
            if not each.settled and each.decided is None
        ),
    )
    yield claim(
        f"{len(seen.unanswered):,} submits that the network never answered were answered 202",
        (_name(each) for each in seen.unanswered if not each.accepted),
    )
    twice = [each for each in seen.purchases if sum(code == "202" for code in each.codes) > 1]
    yield claim(
        f"no payment was accepted twice, {seen.raced:,} of them sent to two servers at once",
        map(_name, twice),
    )
    yield claim(
        f"{len(seen.between):,} payments whose server was killed between submit and record "
        "are found again",
        (_name(each) for each in seen.between if each.status in {None, PENDING}),
    )


def _wrong_end(purchase: Purchase, seen: Observations) -> Iterator[str]:
    there = seen.charges_of(purchase)
    if purchase.decided is not None:
        if purchase.status != purchase.decided:
            said = f"has status {purchase.status}; an operator decided {purchase.decided}"
            yield f"{_name(purchase)} {said}"
        return
    if purchase.settled and not there.times and purchase.status == FAILED:
        return
    if purchase.status is None:
        if there.times:
            yield f"{_name(purchase)} is not found, and the network has charged it"
    elif purchase.status == PENDING:
        yield f"{_name(purchase)} is still pending; the network says {there.status}"
    elif purchase.status != there.status:
        yield f"{_name(purchase)} has status {purchase.status}; the network says {there.status}"


def _charges(seen: Observations) -> Iterator[Claim]:
    charged = {key: each for key, each in seen.charges.items() if each.times}
    yield claim(
        f"{len(charged):,} payments were charged at the network once each",
        (
            f"{key} was charged {each.times} times"
            for key, each in charged.items()
            if each.times > 1
        ),
    )
    yield claim(
        "no payment that the network charged was sent to it again",
        (f"{key} was answered 219 there" for key, each in charged.items() if each.repeats),
    )
    again = {key: each for key, each in seen.charges.items() if each.repeats and not each.times}
    ours = {(each.service_id, each.transaction_id): each for each in seen.purchases}
    yield claim(
        f"{len(again):,} payments that the network refused were sent to it again by their client",
        (
            f"{key} was answered 219 there"
            for key, each in again.items()
            if not _is_of_client(ours.get(key), each)
        ),
    )
    yield claim(
        "the network was charged for nothing that no client sent",
        (f"{key} was charged" for key in charged if key not in ours),
    )


def _is_of_client(purchase: Purchase | None, there: Charges) -> bool:
    """Whether each repeat of a refused payment is a request of its client.

    Our gateway keeps nothing of a refused payment. Where a kill cuts off the answer, the client
    sends the payment again, and it goes to the network as a new one.
    """
    requests = [] if purchase is None else purchase.codes
    return not REFUSALS.isdisjoint(there.codes) and there.repeats < len(requests)


def _callbacks(seen: Observations) -> Iterator[Claim]:
    arrivals = seen.facts.arrivals()
    final = {
        each.transaction_id: each
        for each in seen.purchases
        if each.status is not None and not each.refund_of
    }
    yield claim(
        f"{len(final):,} payments' callbacks arrived and were acknowledged",
        (
            f"{_name(each)}: none was acknowledged"
            for each in final.values()
            if not any(delivery.taken for delivery in arrivals.get(each.transaction_id, ()))
        ),
    )
    yield claim(
        f"{len(seen.facts.deliveries):,} deliveries are signed and say how their payment ended",
        _wrong_deliveries(seen, final),
    )
    yield repeats(seen.facts)


def _wrong_deliveries(seen: Observations, final: dict[str, Purchase]) -> Iterator[str]:
    for delivery in seen.facts.deliveries:
        purchase = final.get(delivery.trans_ref)
        if purchase is None:
            yield f"a callback came for {delivery.trans_ref}, which is not there"
        elif not delivery.genuine:
            yield f"a callback of {_name(purchase)} is not genuine"
        elif not delivery.trans_status.startswith(f"{purchase.status}/"):
            yield f"a callback of {_name(purchase)} says {delivery.trans_status}"


def _books(seen: Observations) -> Iterator[Claim]:
    books = seen.books
    assets = ", ".join(sorted(books.assets)) or "none"
    yield claim(
        f"every asset sums to zero ({assets}), and every balance is the sum of its postings",
        (
            *(f"{name} sums to {total}" for name, total in books.assets.items() if total),
            *(f"the balance of {name} is not the sum of its postings" for name in books.wrong),
        ),
    )
    yield claim(
        "nothing is held any more",
        (
            *(f"hold {each} is open" for each in books.open_holds),
            *(f"service {service} has {held} held" for service, held in books.held.items() if held),
        ),
    )
    expected = _balances(seen)
    yield claim(
        f"{len(expected):,} balances are what the network carried out, and what operators entered",
        (
            f"service {service} has {books.available.get((service, wallet), Decimal(0))} in "
            f"{wallet}, not {amount}"
            for (service, wallet), amount in expected.items()
            if books.available.get((service, wallet), Decimal(0)) != amount
        ),
    )
    yield claim(
        "suspense got what the network said against a decision of an operator, and nothing else",
        (problem for each in seen.purchases for problem in _wrong_suspense(each, seen)),
    )


def _balances(seen: Observations) -> dict[tuple[int, str], Decimal]:
    """What each wallet must have, by the records of the network and what operators decided."""
    found: defaultdict[tuple[int, str], Decimal] = defaultdict(Decimal)
    for each in seen.purchases:
        moved = _carried_out(each, seen)
        if each.decided is not None:
            moved = _decided(each, seen)
        if moved:
            found[each.service_id, _WALLETS[each.operation]] += moved
    for entry in seen.books.entries:
        if entry.wallet:
            found[entry.service_id, entry.wallet] += entry.amount
    return found


def _carried_out(purchase: Purchase, seen: Observations) -> Decimal:
    """What the network moved into the wallet of a payment, or out of it."""
    there = seen.charges_of(purchase)
    succeeded = there.times and there.status == SUCCEEDED
    return _signed(purchase, purchase.amount) if succeeded else Decimal(0)


def _decided(purchase: Purchase, seen: Observations) -> Decimal:
    """What the decision of an operator moved."""
    amount = seen.books.moved.get(purchase.transaction_id, purchase.amount)
    return _signed(purchase, amount) if purchase.decided == SUCCEEDED else Decimal(0)


def _signed(purchase: Purchase, amount: Decimal) -> Decimal:
    return amount if purchase.operation in _INTO else -amount


def _wrong_suspense(purchase: Purchase, seen: Observations) -> Iterator[str]:
    name, books, due = purchase.transaction_id, seen.books, Decimal(0)
    there, here = _carried_out(purchase, seen), _decided(purchase, seen)
    if purchase.decided is not None and bool(there) is not bool(here):
        due = there - here
    had = books.suspended.get(name, Decimal(0))
    # What the network has forgotten, or says with another amount, is for a person to correct.
    unsaid = not had and name in books.doubted | seen.unknown_there
    if had != due and not unsaid:
        yield f"{had} went into suspense for {_name(purchase)}, not {due}"


def _of_momo(seen: Observations) -> Iterator[Claim]:
    """What only MTN MoMo does: its tokens end, and its callbacks are unsigned."""
    if seen.renewals:
        waiting = " and ".join(str(each.waiting) for each in seen.renewals)
        yield claim(
            f"one new token for each server and product, where {waiting} payments waited for it",
            (
                f"{count} tokens of {product} were given to {each.servers} servers"
                for each in seen.renewals
                for product, count in each.given.items()
                if count > each.servers
            ),
        )
    if seen.notified:
        ways = Counter[str]()
        for (way, _), count in seen.notified.items():
            ways[way] += count
        came = ", ".join(f"{count:,} {way}" for way, count in sorted(ways.items()))
        yield claim(
            f"the callbacks of the network were acknowledged ({came})",
            (
                f"{count} that came {way} were answered HTTP {status}"
                for (way, status), count in seen.notified.items()
                if status != 200 and not seen.database_away
            ),
        )


def _servers(seen: Observations) -> Claim:
    return claim("the servers ended only when they were killed", seen.facts.complaints)


def _name(purchase: Purchase) -> str:
    codes = ", ".join(code or "no answer" for code in purchase.codes)
    kind = "accepted " if ACCEPTED.intersection(purchase.codes) else ""
    return (
        f"{kind}{purchase.operation} {purchase.transaction_id} of service {purchase.service_id} "
        f"({codes})"
    )
