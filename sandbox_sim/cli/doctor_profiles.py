"""What `sandbox-sim doctor` says about the setting `callback_profile`."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from sandbox_sim.config import Settings
from sandbox_sim.domain.callbacks import receiver_checks
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import choose_profile
from sandbox_sim.domain.callbacks.receiver_checks import Finding
from sandbox_sim.domain.callbacks.receiver_verdicts import PROFILE_ADVICE, Verdict


class ConfiguredProfile(NamedTuple):
    """The profile that a gateway sends to a receiver, and the name of the setting that says so."""

    profile: Profile
    setting: str


def configured_profile(settings: Settings, url: str) -> ConfiguredProfile:
    """The profile of the first credential set at this `callback_url`."""
    client = settings.credentials[0]
    default = client.callback_profile or settings.callback_profile
    glob = next((each for each in settings.callback_profiles if fnmatchcase(url, each)), None)
    name = "callback_profile"
    if glob is not None:
        name = f'callback_profiles."{glob}"'
    elif client.callback_profile is not None:
        name = f"callback_profile of the credentials {client.client_key}"
    profile = choose_profile(url, settings.callback_profiles, default)
    return ConfiguredProfile(profile, name)


def working(findings: Sequence[Finding]) -> Sequence[Profile]:
    """The profiles whose successful payment counts as paid, and whose failed one does not."""
    verdicts = {(each.check, each.profile): each.assessment.verdict for each in findings}
    return [
        profile
        for profile in Profile
        if verdicts.get((receiver_checks.PAID, profile)) is Verdict.OK
        and verdicts.get((receiver_checks.NOT_PAID, profile), Verdict.OK) is Verdict.OK
    ]


def recommended(works: Sequence[Profile], configured: Profile) -> Profile | None:
    """The profile to set; None where the configured one works, or none does."""
    if not works or configured in works:
        return None
    return Profile.SUPERSET if Profile.SUPERSET in works else works[0]


def tested_lines(works: Sequence[Profile], configured: ConfiguredProfile) -> Iterator[str]:
    """With `--paid`: which profiles work, and what to set."""
    if not works:
        yield "no profile works: with none of them the order of a successful payment counts as paid"
        return
    found = recommended(works, configured.profile)
    yield f"works with: {', '.join(works)}"
    if found is None:
        yield f"{configured.setting} = {configured.profile} is right"
    else:
        yield f"set {configured.setting} = {found}"


def advice_lines(configured: ConfiguredProfile) -> Iterator[str]:
    """Without `--paid`: how to choose a profile."""
    yield f"{configured.setting} is {configured.profile}. What another receiver may need:"
    for reads, profile in PROFILE_ADVICE:
        yield f"  {reads + ':':34}callback_profile = {profile}"
    yield "An acknowledgement does not show that the order is paid; --paid 'COMMAND' finds out."
