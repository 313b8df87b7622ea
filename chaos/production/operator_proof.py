"""What must hold of the acts of operators: each is in the books once. D44, D45."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal

from chaos.production.observations import PENDING, SUCCEEDED, Act, Observations, Purchase
from chaos.proof.claim import Claim, claim


def claims(seen: Observations) -> Iterator[Claim]:
    """The claims about operators who act at random."""
    books, entries = seen.books, Counter(each.why for each in seen.books.entries)
    done = [each for each in seen.acts if each.found or (each.code == 200 and not each.noted)]
    lost = [each for each in seen.acts if each.code is None and not each.found]
    none = [each for each in seen.acts if each.noted or each.code not in {200, None}]
    by_kind = Counter(each.kind for each in done)
    kinds = ", ".join(f"{count:,} x {kind}" for kind, count in sorted(by_kind.items()))
    looked = sum(each.found for each in done)
    yield claim(
        f"{len(done):,} acts of operators are in the books once each ({kinds}), {looked:,} of them "
        "without an answer",
        _not(done, (1,), entries),
    )
    there = sum(entries[each.name] for each in lost)
    yield claim(
        f"{len(lost):,} acts whose answer was lost are there once ({there:,}) or not",
        _not(lost, (0, 1), entries),
    )
    yield claim(
        f"nothing is in the books of {len(none):,} acts that were refused",
        _not(none, (0,), entries),
    )
    acts = {each.name for each in seen.acts}
    yield claim(
        f"{len(books.entries):,} entries, decisions and refunds say who and why",
        (
            f"{each} is of no act"
            for each in books.entries
            if not each.by or (each.why not in acts and each.by != "chaos")
        ),
    )
    refunds = [each for each in seen.purchases if each.refund_of]
    yield claim(
        f"{len(refunds):,} refunds come to at most what was collected", _too_much(seen, refunds)
    )
    yield claim(
        f"no wallet of {len(books.available):,} is below zero",
        (f"{key} has {has}" for key, has in books.available.items() if has < 0),
    )
    left = books.in_suspense
    yield claim("suspense is empty", [f"{left} stand there"] if left else [])
    yield claim(
        f"{seen.reads:,} times operators read books that agree, and statements that never change",
        seen.remarks,
    )


def _too_much(seen: Observations, refunds: Sequence[Purchase]) -> Iterator[str]:
    """Refunds that come to more than their collection brought, in the books or at the network."""
    of: defaultdict[str, list[Purchase]] = defaultdict(list)
    for each in refunds:
        of[each.refund_of].append(each)
    for name, its in of.items():
        counted = [each.amount for each in its if each.status in {SUCCEEDED, PENDING}]
        brought = seen.books.collected.get(name, Decimal(0))
        if sum(counted) > brought:
            yield f"{sum(counted)} of {name} were refunded, and {brought} were collected"


def _not(acts: Iterable[Act], times: Collection[int], entries: Counter[str]) -> Iterator[str]:
    """The acts that are in the books another number of times."""
    for each in acts:
        if entries[each.name] not in times:
            yield f"{each.kind} {each.name} (HTTP {each.code}) is there {entries[each.name]} times"
