"""Made-up people with Ghanaian names; the same seed gives the same people on every machine.

Faker gives the names. All other values are drawn here, each with its own random generator, so that
another version of Faker changes only the names.
"""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Final, NamedTuple

from sandbox_sim.control.seeding import Person, SamplePayment, SampleRecords, SampleSms
from sandbox_sim.operations import PAYMENTS, Operation, Party
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.transactions import Choice, Payment
from sandbox_sim.values import vocabulary
from sandbox_sim.values.msisdn import DECLINED_DIGIT, NETWORK_OF_PREFIX
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY, MOBILE_NETWORKS

_CHOICES: Final = (Choice.PAY, Choice.CANCEL, Choice.PAY, Choice.FAIL)
_TEXTS: Final = (
    "Hello {name}, order {order} is paid and on its way to you.",
    "Your code is {code}. It is valid for ten minutes. We will never ask you for it.",
    "{name}, the rider with order {order} is in your street. Please keep your phone on.",
    "Medaase, {name}! 🎉 Show this at the counter and the next delivery is free.",
    (
        "Dear {name}, on Saturday our shop in Osu moves to the new building opposite the market. "
        "From Monday you will find us there from eight to six, with parking behind the building "
        "and the same people at the till."
    ),
)
# One of this many people has a declined number; one of this many payments is pending.
_DECLINED_EVERY: Final = 6
_PENDING_EVERY: Final = 8
# Network ids outside the range of real payments; the first digit is not 0 (D18).
_FIRST_NETWORK_ID: Final = 9 * 10**10
_NETWORK_IDS: Final = 10**10
_MAX_RECORDS: Final = 1000


class _Seed(NamedTuple):
    """The seed of all draws."""

    seed: int
    service_id: int

    def random(self, what: str, number: int = 0) -> Random:
        """A generator for one value, independent of the draws for other values."""
        return Random(f"{self.seed} {self.service_id} {what} {number}")  # noqa: S311


class FakePeople:
    """The `People` of a sandbox; it uses numbers, cards and sender ids that sandbox accepts."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._allowlist = behaviour.allowlist
        self._cards = sorted(behaviour.test_cards.items())
        self._operations = [each for each in PAYMENTS if self._cards or each is not Operation.CARD]
        self._senders = behaviour.approved_senders or ("Shop",)

    def sample_records(self, seed: int, service_id: int, count: int) -> SampleRecords:
        """`count` payments and `count` SMS of half as many people."""
        source = _Seed(seed, service_id)
        people = self._people(source, (count + 1) // 2)
        customers = [people[number % len(people)] for number in range(count)]
        return SampleRecords(
            people,
            [self._sample_payment(source, *each) for each in enumerate(customers)],
            [self._sample_sms(source, *each) for each in enumerate(customers)],
        )

    def _people(self, source: _Seed, count: int) -> Sequence[Person]:
        from faker import Faker  # noqa: PLC0415 -- imported only for seeding

        fake = Faker("tw_GH")
        fake.seed_instance(str(source))
        people = []
        for number in range(count):
            phone = self._phone(source, number)
            nw = NETWORK_OF_PREFIX.get(phone[:4]) or source.random("nw", number).choice(
                MOBILE_NETWORKS
            )
            # Faker has some names with two capital letters.
            people.append(Person(f"{fake.first_name()} {fake.last_name()}".title(), phone, nw))
        return people

    def _phone(self, source: _Seed, number: int) -> str:
        """An allowed number, in local form."""
        rng = source.random("phone", number)
        listed = sorted(filter(self._allowlist.allows, self._allowlist.numbers))
        if listed:
            return rng.choice(listed)
        beginning = f"{rng.choice(self._allowlist.prefixes)}{rng.randrange(10**9):09d}"[:9]
        is_declined = number % _DECLINED_EVERY == _DECLINED_EVERY - 1
        return beginning + (DECLINED_DIGIT if is_declined else str(rng.randrange(9)))

    def _sample_payment(self, source: _Seed, number: int, person: Person) -> SamplePayment:
        rng = source.random("purchase", number)
        operation = self._operations[number % len(self._operations)]
        row = PAYMENTS[operation]
        nw, party = person.nw, person.customer_number
        if row.party is Party.CARD:
            party, nw = rng.choice(self._cards)
        elif row.party is Party.BILL_ACCOUNT:
            nw = rng.choice(row.products)
            party = f"{vocabulary.ACCOUNT_PREFIX[nw]}000000{rng.randrange(1000):03d}"
        payment = Payment(
            operation=operation,
            service_id=source.service_id,
            transaction_id=f"SEED-{source.seed}-{_order_number(number)}",
            reference=f"Order {_order_number(number)}",
            amount=Decimal(rng.randint(*row.sample_amounts)).scaleb(-2),
            nw=nw,
            party=party,
            payment_mode=row.usual_mode,
            currency_code=DEFAULT_CURRENCY,
            callback_url="",
        )
        first = _FIRST_NETWORK_ID + source.random("ids").randrange(_NETWORK_IDS - _MAX_RECORDS)
        is_pending = number % _PENDING_EVERY == _PENDING_EVERY // 2
        return SamplePayment(
            network_transaction_id=str(first + number),
            payment=payment,
            ago=timedelta() if is_pending else _seconds(rng, 60, 600),
            choice=_CHOICES[number // len(self._operations) % len(_CHOICES)],
            time_to_choose=_seconds(rng, 5, 45),
        )

    def _sample_sms(self, source: _Seed, number: int, person: Person) -> SampleSms:
        rng = source.random("text", number)
        values = {
            "name": person.name.split()[0],
            "order": _order_number(number),
            "code": f"{rng.randrange(10**4):04d}",
        }
        return SampleSms(
            processing_id=f"{rng.getrandbits(128):032x}",
            customer_number=person.customer_number,
            sender_id=rng.choice(self._senders),
            msg_body=rng.choice(_TEXTS).format(**values),
            ago=_seconds(rng, 60, 7 * 86_400),
        )


def _order_number(number: int) -> int:
    return 1001 + number


def _seconds(rng: Random, low: int, high: int) -> timedelta:
    """A random time between the two, to the millisecond."""
    return timedelta(milliseconds=rng.randint(low * 1000, high * 1000))
