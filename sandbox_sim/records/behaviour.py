"""The settings that can change while the server runs: rules, delays, approval and callbacks.

Settings that open sockets or files, or guard the server, stay as they were at the start. So does
`balances`: a change would leave payments that are booked in part.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, TypedDict

from sandbox_sim.records.callbacks import CallbackSettings, Profile
from sandbox_sim.records.magic_outcomes import MagicOutcomes
from sandbox_sim.records.retry_schedule import RetrySchedule
from sandbox_sim.values.cards import TEST_CARDS, masked
from sandbox_sim.values.msisdn import Allowlist
from sandbox_sim.values.rate_limit import RateLimit


class SettingView(TypedDict):
    """A setting that can change while the server runs, as the control API shows it."""

    value: Annotated[Any, "what holds now, with card numbers masked"]
    configured: Annotated[Any, "what the server was started with"]
    changed: Annotated[bool, "whether the two differ"]
    choices: Annotated[list[Any] | None, "the values that it can have; null where they are many"]
    description: Annotated[str, "what it does"]


@dataclass(frozen=True)
class Behaviour:
    """The settings of these names, with their defaults, and the values that use cases derive.

    turned_on_by_lenient: the names of the settings that only `lenient` turned on (D34).
    given: the settings that users set while the server runs, by name; one may have the value that
    is configured.
    """

    sandbox_reject_status: int = 200
    rate_limit_per_minute: float | None = None
    rate_limit_burst: int = 20
    turned_on_by_lenient: tuple[str, ...] = ()
    allowed_prefixes: tuple[str, ...] = ("0244", "0200", "0270")
    allowed_numbers: tuple[str, ...] = ()
    match_network: bool = False
    accept_international: bool = False
    duplicates: str = "accept"
    magic_outcomes: Mapping[str, str] = field(default_factory=dict)
    settle_delay_ms: int = 1000
    approval: str = "auto"
    approval_timeout_s: float = 120
    test_cards: Mapping[str, str] = field(default_factory=lambda: dict(TEST_CARDS))
    sandbox_card_entry: bool = False
    card_auto_complete_ms: int = 3000
    sms_transition_ms: int = 800
    approved_senders: tuple[str, ...] = ()
    callback_profile: str = Profile.TRANS
    callback_profiles: Mapping[str, str] = field(
        default_factory=lambda: {"*/wc-api/*": Profile.EVENT}
    )
    sign_callbacks: bool = True
    callback_attempts: int = 3
    callback_retry_interval_s: float = 300
    callback_timeout_s: float = 30
    given: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "Behaviour":
        """Read valid settings, or what `shown` returned; other names are ignored."""
        read: dict[str, Any] = {}
        for name in (each.name for each in fields(cls) if each.name in values):
            value = values[name]
            read[name] = tuple(value) if isinstance(value, list) else value
        return cls(**read)

    def shown(self) -> dict[str, Any]:
        """The values by their names; they can be written as JSON."""
        return asdict(self)

    @property
    def shown_given(self) -> dict[str, Any]:
        """What users set, as people may see it."""
        return {name: shown_value(name, value) for name, value in self.given.items()}

    @cached_property
    def allowlist(self) -> Allowlist:
        """The numbers that sandbox accepts (D11)."""
        numbers = frozenset(self.allowed_numbers)
        return Allowlist(self.allowed_prefixes, numbers, self.accept_international)

    @cached_property
    def rejects_duplicates(self) -> bool:
        """Whether a `transaction_id` that is in use is refused (D14)."""
        return self.duplicates == "reject"

    @cached_property
    def magic(self) -> MagicOutcomes:
        """The magic outcomes, parsed (D35)."""
        return MagicOutcomes.parse(self.magic_outcomes)

    @cached_property
    def rate_limit(self) -> RateLimit | None:
        """The limit of requests of each client; None if there is none (D10)."""
        per_minute = self.rate_limit_per_minute
        return None if per_minute is None else RateLimit(per_minute, self.rate_limit_burst)

    @cached_property
    def settle_delay(self) -> timedelta:
        """Gateway time from the 202 to the success (D16)."""
        return timedelta(milliseconds=self.settle_delay_ms)

    @cached_property
    def card_auto_complete(self) -> timedelta:
        """Gateway time to the success of a card whose page no browser opens; 0 for never (D20)."""
        return timedelta(milliseconds=self.card_auto_complete_ms)

    @cached_property
    def prompt_timeout(self) -> timedelta | None:
        """How long a payer has to answer on the handset; None if no payer is asked (D33)."""
        return timedelta(seconds=self.approval_timeout_s) if self.approval == "handset" else None

    @cached_property
    def sms_transition(self) -> timedelta:
        """Gateway time of an SMS from ACKNOWLEDGED to SENT or REFUNDED (D25)."""
        return timedelta(milliseconds=self.sms_transition_ms)

    @cached_property
    def callbacks(self) -> CallbackSettings:
        """How callbacks are written (D27, D29)."""
        profiles = {glob: Profile(each) for glob, each in self.callback_profiles.items()}
        return CallbackSettings(Profile(self.callback_profile), profiles, self.sign_callbacks)

    @cached_property
    def schedule(self) -> RetrySchedule:
        """The retry policy of callbacks (D30)."""
        return RetrySchedule(
            self.callback_attempts,
            timedelta(seconds=self.callback_retry_interval_s),
            timedelta(seconds=self.callback_timeout_s),
        )

    @property
    def sample_number(self) -> str:
        """A number that the allowlist accepts, for people to try."""
        return next(iter(self.allowed_numbers), f"{self.allowed_prefixes[0]}000001")


def shown_value(name: str, value: Any) -> Any:
    """The value of a setting as people may see it: the numbers of test cards are masked (D38)."""
    if name == "test_cards":
        return {masked(number): brand for number, brand in value.items()}
    return value
