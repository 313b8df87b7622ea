"""The proof: a pure function from the facts of a run to claims. It sends no request.

Each claim is a sentence with counts, and the violations that were found, with their ids.
"""

from collections.abc import Sequence

from chaos.facts import Facts
from chaos.proof import conduct, payments, sms
from chaos.proof.claim import Claim

__all__ = ["Claim", "prove"]


def prove(facts: Facts) -> Sequence[Claim]:
    """Every claim, with and without violations."""
    return [*sms.claims(facts), *payments.claims(facts), *conduct.claims(facts)]
