"""The settings that can change while the server runs, as the use cases read them."""

import json
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.retry_schedule import RetrySchedule
from sandbox_sim.settings.loading import load
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import Client
from sandbox_sim.values.rate_limit import RateLimit


@pytest.mark.decision("D10")
def test_the_word_field_sets_the_rate_limit_and_each_part_can_be_set_alone() -> None:
    def limit(**given: Any) -> RateLimit | None:
        return Settings(**given).behaviour().rate_limit

    assert limit(rate_limit="field") == RateLimit(100, 20)
    assert limit(rate_limit="field", rate_limit_burst=3) == RateLimit(100, 3)
    assert limit(rate_limit="field", rate_limit_per_minute=5) == RateLimit(5, 20)
    assert load(flags={"rate_limit": "field"}).origins["rate_limit_per_minute"] == "rate_limit"


def test_behaviour_has_the_names_and_defaults_of_the_settings() -> None:
    names = {each.name for each in fields(Behaviour)} - {"turned_on_by_lenient", "given"}

    assert names <= set(Settings.model_fields)
    assert Settings().behaviour() == Behaviour()


@pytest.mark.decision("D34")
def test_behaviour_has_the_settings_of_lenient_and_those_set_alone() -> None:
    behaviour = Settings(lenient=True, callback_profile=Profile.FLAT).behaviour()

    assert behaviour.accept_international
    assert behaviour.callbacks.profile is Profile.FLAT
    assert behaviour.turned_on_by_lenient == ("accept_international",)


def test_behaviour_is_read_back_from_its_json() -> None:
    behaviour = replace(
        Behaviour(),
        rate_limit_per_minute=0.5,
        allowed_numbers=("0244000001",),
        magic_outcomes={"13.37": "001"},
        callback_profile=Profile.FLAT,
        callback_profiles={"*": Profile.SUPERSET},
    )

    read = Behaviour.parse(json.loads(json.dumps(behaviour.shown())))

    assert read == behaviour
    assert read.callbacks.profile is Profile.FLAT
    assert read.callbacks.profiles["*"] is Profile.SUPERSET
    # Unknown values are ignored, and missing ones have their default.
    assert Behaviour.parse({"of_a_later_release": 1, "settle_delay_ms": 5}) == Behaviour(
        settle_delay_ms=5
    )


@pytest.mark.decision("D10", "D29", "D30", "D33")
def test_behaviour_provides_limits_timeouts_schedule_and_keys() -> None:
    assert Behaviour().rate_limit is None
    assert Behaviour(rate_limit_per_minute=100).rate_limit == RateLimit(100, 20)

    by_handset = Behaviour(approval="handset", approval_timeout_s=5)
    assert by_handset.prompt_timeout == timedelta(seconds=5)
    assert replace(by_handset, approval="auto").prompt_timeout is None

    retries = Behaviour(callback_attempts=2, callback_retry_interval_s=0.5, callback_timeout_s=1.5)
    assert retries.schedule == RetrySchedule(2, timedelta(seconds=0.5), timedelta(seconds=1.5))

    client = Client("shop", "shop-secret")
    assert Behaviour().callbacks.key_of(client) == "shop-secret"
    assert Behaviour().callbacks.key_of(None) is None
    assert Behaviour(sign_callbacks=False).callbacks.key_of(client) is None
