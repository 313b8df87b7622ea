"""What the settings say of the rules of the interface, in the types of those who apply them."""

from datetime import timedelta

from sandbox_sim.config import Settings
from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.payments.magic_outcomes import MagicOutcomes
from sandbox_sim.domain.payments.payment_rules import Sandbox
from sandbox_sim.domain.rate_limit import RateLimit
from sandbox_sim.web.openapi.routes import ServerFacts


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


def approval_of(settings: Settings) -> timedelta | None:
    """How long a payer has to answer the prompt on the handset; None if no prompt is sent."""
    if settings.approval == "auto":
        return None
    return timedelta(seconds=settings.approval_timeout_s)


def rate_limit_of(settings: Settings) -> RateLimit | None:
    """The limit of requests a minute; None if there is none."""
    if settings.rate_limit_per_minute is None:
        return None
    return RateLimit(settings.rate_limit_per_minute, settings.rate_limit_burst)


def facts_of(settings: Settings) -> ServerFacts:
    """What the OpenAPI document says of this server."""
    needs_token = settings.token is not None
    return ServerFacts(settings.base_path, settings.sandbox_reject_status, needs_token=needs_token)
