"""The profile of a callback that arrived."""

from typing import Any

from sandbox_sim.records.callbacks import Profile


def profile_of(body: dict[str, Any]) -> Profile:
    """Return the profile of a callback body, which its fields show."""
    if "event_type" in body:
        return Profile.EVENT
    if "trans_ref" not in body:
        return Profile.FLAT
    if "transaction_id" in body:
        return Profile.SUPERSET
    return Profile.TRANS if "/" in body["trans_status"] else Profile.TRANS_BARE
