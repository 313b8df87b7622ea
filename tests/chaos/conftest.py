"""A run without a fault, which each test changes."""

import pytest

from chaos.facts import Facts, Final, History, Outage
from tests.chaos.evidence import (
    BAD,
    GOOD,
    POOR,
    SHOP,
    asked,
    delivery,
    message,
    payment,
    send,
    status,
)


@pytest.fixture
def facts() -> Facts:
    """One kill at 2.0, the ready line at 2.5, and the final state at 10.0."""
    return Facts(
        payments=[
            payment("paid", 1.0, "202"),
            payment("card", 1.0, "000"),
            payment("declined", 1.0, "015"),
            payment("stranger", 1.0, "019"),
            payment("over", 1.0, "016"),
            payment("cut-there", 2.0, None, "202"),
            payment("cut-gone", 2.0, None, "202"),
            payment("cut-declined", 2.0, None, "015"),
        ],
        sends=[
            send("one", 1.0, "370", GOOD, reference="m1"),
            send("many", 1.0, "370", GOOD, BAD, reference="b1"),
            send("no units", 1.0, "237", GOOD),
            send("cut, gone", 2.0, None, GOOD),
            send("cut, there", 2.0, None, GOOD, GOOD),
        ],
        statuses=[status("paid", 1.1, "002"), status("paid", 3.0, "000")],
        histories=[History(asked(3.0, "393"), SHOP, (message("m1", "one", GOOD),))],
        deliveries=[
            delivery("paid", 1.5, answered=500),
            delivery("paid", 1.99),
            delivery("paid", 2.6),  # the server was killed before it could save the delivery
            delivery("card", 1.6),
            delivery("cut-there", 2.7),
        ],
        outages=[Outage(0, 2.0, 2.5)],
        final=_final(),
    )


def _final() -> Final:
    messages = [
        message("m1", "one", GOOD),
        message("m2", "many", GOOD, "b1"),
        message("m3", "many", BAD, "b1"),
        message("m4", "cut, there", GOOD, "b2"),
        message("m5", "cut, there", GOOD, "b2"),
    ]
    statuses = {
        "paid": "000",
        "card": "000",
        "declined": "001",
        "stranger": None,
        "over": None,
        "cut-there": "000",
        "cut-gone": None,
        "cut-declined": "001",
    }
    return Final(
        histories={SHOP: (messages, len(messages)), POOR: ([], 0)},
        balances={SHOP: 496, POOR: 0},
        statuses={ref: status(ref, 10.0, said) for ref, said in statuses.items()},
    )
