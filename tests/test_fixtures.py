"""The configurations in `fixtures/` load, and the gateway answers as the samples there say."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sandbox_sim.cli import main
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.loading import load as load_settings
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.response_codes import CATALOGUE
from tests.conftest import StartSandbox
from tests.samples import FIXTURES, Placeholders, Sample, load

FILES = sorted((FIXTURES / "samples").glob("*.json"))


def marked(file: Path) -> object:
    """Return a sample as a parameter, marked with its endpoint and the rules of its answers."""
    sample = load(file)
    rules = {exchange.rule for exchange in (sample, sample.afterwards) if exchange}
    decisions = {rule for rule in rules if rule.startswith("D")}
    number = int(file.name[:2])
    endpoint = {f"endpoint.{number}"} if number else set()
    marks = [
        pytest.mark.spec(*sorted(rules - decisions | endpoint)),
        pytest.mark.decision(*sorted(decisions)),
    ]
    return pytest.param(sample, id=file.stem, marks=[mark for mark in marks if mark.args])


@pytest.mark.parametrize("sample", [marked(file) for file in FILES])
async def test_the_gateway_answers_as_a_sample_says(
    start_sandbox: StartSandbox, sample: Sample
) -> None:
    sandbox = await start_sandbox(**sample.settings)
    values = Placeholders(sandbox.url)

    answer = await sandbox.post(sample.path, values.fill(sample.request), **sample.headers)

    values.expect(sample.answer, answer.body)
    assert (answer.status, answer.rule) == (sample.status, sample.rule)

    if sample.afterwards:
        then = sample.afterwards
        await sandbox.advance(milliseconds=then.advance_ms)
        later = await sandbox.post(then.path, values.fill(then.request), **sample.headers)
        values.expect(then.answer, later.body)
        assert (later.status, later.rule) == (then.status, then.rule)

    await sandbox.advance(hours=1)
    deliveries = await sandbox.inbox("samples")
    assert len(deliveries) == (sample.callback is not None)
    if sample.callback is not None:
        values.expect(sample.callback, deliveries[0]["json"])
        assert deliveries[0]["signature"] == "valid"


def test_every_operation_has_a_sample() -> None:
    """A file name begins with the number of its endpoint, or with 00 for all of them."""
    assert {file.stem[:2] for file in FILES} == {f"{number:02}" for number in range(13)}


def test_every_code_that_a_request_alone_can_cause_has_a_sample() -> None:
    """500 needs an error of the server, and 401 needs an override."""
    samples = [load(file) for file in FILES]
    answers = [sample.answer for sample in samples]
    answers += [sample.afterwards.answer for sample in samples if sample.afterwards]

    assert {answer["response_code"] for answer in answers} == set(CATALOGUE) - {"500", "401"}


def test_every_callback_profile_has_a_sample() -> None:
    samples = map(load, FILES)
    profiles = {s.settings["callback_profile"] for s in samples if "callback_profile" in s.settings}

    assert profiles == set(Profile)


@pytest.fixture
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", *Settings.model_fields):
        monkeypatch.delenv(f"SANDBOX_SIM_{name.upper()}", raising=False)


@pytest.mark.usefixtures("_no_environment")
def test_the_commented_configuration_is_what_config_init_prints() -> None:
    printed = CliRunner().invoke(main, ["config", "init", "-"]).stdout_bytes

    assert (FIXTURES / "sandbox_sim.toml").read_bytes() == printed, (
        "the settings have changed; write the file again with: "
        ".venv/bin/sandbox-sim config init - > fixtures/sandbox_sim.toml"
    )


@pytest.mark.usefixtures("_no_environment")
def test_the_example_configuration_loads() -> None:
    settings = load_settings(FIXTURES / "examples.toml").settings

    shop, payroll = settings.clients().values()
    assert (shop.may_use(101), shop.may_use(201)) == (True, False)
    assert (payroll.may_use(101), payroll.may_use(201)) == (False, True)
    assert (shop.callback_profile, payroll.callback_profile) == (Profile.FLAT, Profile.TRANS_BARE)
    assert settings.accept_international
