"""The rules of the interface, as the settings have them."""

from sandbox_sim.config import Settings
from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.payments.magic_outcomes import MagicOutcomes
from sandbox_sim.domain.payments.payment_rules import Sandbox
from sandbox_sim.domain.rate_limit import RateLimit


def sandbox_of(settings: Settings) -> Sandbox:
    """The settings of the sandbox rules."""
    return Sandbox(
        allowlist=Allowlist(
            prefixes=tuple(settings.allowed_prefixes),
            numbers=frozenset(settings.allowed_numbers),
            accept_international=settings.accept_international,
            match_network=settings.match_network,
        ),
        test_cards=settings.test_cards,
        reject_duplicates=settings.duplicates == "reject",
        lenient=frozenset(settings.turned_on_by_lenient),
        magic_outcomes=MagicOutcomes.parse(settings.magic_outcomes),
    )


def rate_limit_of(settings: Settings) -> RateLimit | None:
    """The limit of requests a minute; None if there is none."""
    if settings.rate_limit_per_minute is None:
        return None
    return RateLimit(settings.rate_limit_per_minute, settings.rate_limit_burst)
