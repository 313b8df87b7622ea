"""The proof: a pure function from what was seen to what that shows. It reads, and asks nobody.

Each claim is a sentence with its counts, and the violations of it that were found, with the ids.
"""

from collections.abc import Sequence

from chaos.facts import Facts
from chaos.proof import conduct, payments, sms
from chaos.proof.claim import Claim

__all__ = ["Claim", "prove"]


def prove(facts: Facts) -> Sequence[Claim]:
    """Every claim, those that hold too."""
    return [*sms.claims(facts), *payments.claims(facts), *conduct.claims(facts)]
