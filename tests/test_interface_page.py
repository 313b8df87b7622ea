"""docs/interface.md and docs/control-api.md are complete, and their examples are real."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from sandbox_sim.bootstrap import build
from sandbox_sim.cli import main
from sandbox_sim.explanations import rules
from sandbox_sim.records import callbacks, events, inbox, journal, messages, transactions
from sandbox_sim.records.callbacks import DeliveryAttempt, Profile
from sandbox_sim.settings.schema import Settings
from sandbox_sim.sms.sms_encoding import GSM_EXTENSION
from sandbox_sim.values import response_codes, vocabulary
from sandbox_sim.web.api import request_models
from sandbox_sim.web.app import DISPATCHER, ROUTES
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.input import Input
from sandbox_sim.web.control.overrides_and_faults import (
    BehaviourBody,
    FaultBody,
    MatchBody,
    OutcomeBody,
    OverrideBody,
)
from sandbox_sim.web.routes import ANY_METHOD, Access
from tests.conftest import Sandbox, StartSandbox, basic
from tests.docs.pages import slug

DOCS = Path(__file__).parent.parent / "docs"
ADDRESS = "http://127.0.0.1:8233"
# Text that differs in each run: identifiers, times, durations, signatures, tokens.
VARYING = re.compile(
    r"2[0-9]{3}-[0-9-]{5}T[0-9:.]+Z|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|\b[0-9a-f]{8}-[0-9a-f]+\b"
    r"|\b[0-9]{11}\b|(?<=\"id\": )[0-9]+|(?<=\"next\": )[0-9]+"
    r"|(?<=/pay/)[\w-]{22}|(?<=\"duration_ms\": )[0-9.]+|(?<=\"shift_s\": )[0-9.]+"
)
EXAMPLE = re.compile(
    r"^```sh\n(curl (?:(?!^```).)*)^```\n\nHTTP ([0-9]{3}):\n\n```json\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MODELS = {
    "endpoint.1": request_models.Collection,
    "endpoint.2": request_models.TestCardCollection,
    "endpoint.3": request_models.Deposit,
    "endpoint.4": request_models.MobilePayout,
    "endpoint.5": request_models.Bill,
    "endpoint.6": request_models.Airtime,
    "endpoint.7": request_models.TransactionStatusQuery,
    "endpoint.8": request_models.BalanceQuery,
    "endpoint.9": request_models.SmsSend,
    "endpoint.10": request_models.SmsBulk,
    "endpoint.11": request_models.SmsHistory,
    "endpoint.12": request_models.OperationBody,
}
ALSO_ENDPOINT_4 = (request_models.BankPayout, request_models.CardPayout)


@dataclass(frozen=True)
class Page:
    """One page with its anchors and sections."""

    name: str
    text: str

    @property
    def named(self) -> list[str]:
        """The explicit anchors."""
        return re.findall(r'<a id="([^"]+)"></a>', self.text)

    @property
    def slugs(self) -> list[str]:
        """The anchors that headings get."""
        return [slug(heading) for heading in HEADING.findall(self.text)]

    def section(self, anchor: str) -> str:
        """Return the text from an anchor to the next heading, without the anchor's own heading."""
        pattern = rf'<a id="{re.escape(anchor)}"></a>\n+(?:#[^\n]*\n)?(.*?)(?=^#+ |\Z)'
        found = re.search(pattern, self.text, re.MULTILINE | re.DOTALL)
        assert found, f"{self.name} has no anchor {anchor}"
        return found[1]

    def below(self, heading: str) -> str:
        """Return the text from a heading to the next one of any level."""
        pattern = rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)"
        found = re.search(pattern, self.text, re.MULTILINE | re.DOTALL)
        assert found, f"{self.name} has no heading {heading}"
        return found[1]


def page(name: str) -> Page:
    return Page(name, (DOCS / name).read_text("utf-8"))


INTERFACE = page("interface.md")
CONTROL = page("control-api.md")


def rows(section: str) -> list[list[str]]:
    """The cells of every table row, without backticks."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


# --- docs/interface.md ---------------------------------------------------------------------------


def test_every_rule_of_the_interface_has_an_anchor() -> None:
    wanted = [rule.id for rule in rules() if not re.fullmatch("D[0-9]+", rule.id)]

    assert set(wanted) - set(INTERFACE.named) == set()
    assert len(wanted) > 40


@pytest.mark.parametrize("of", [INTERFACE, CONTROL], ids=lambda of: of.name)
def test_an_anchor_stands_once(of: Page) -> None:
    for anchors in (of.named, of.slugs):
        assert sorted(anchors) == sorted(set(anchors))


@pytest.mark.parametrize("of", [INTERFACE, CONTROL], ids=lambda of: of.name)
def test_every_decision_that_is_cited_is_linked_to_its_section(of: Page) -> None:
    sections = {rule.id: rule.section for rule in rules()}
    linked = dict(re.findall(r"^\[(D[0-9]+)\]: (\S+)$", of.text, re.MULTILINE))

    assert set(re.findall(r"\[(D[0-9]+)\](?!:)", of.text)) == set(linked)
    assert linked == {name: f"fidelity.md#{slug(sections[name])}" for name in linked}


def test_the_table_of_codes_is_the_catalogue() -> None:
    found = {row[0]: (row[1], row[3]) for row in rows(INTERFACE.section("codes"))[2:]}

    catalogue = response_codes.CATALOGUE.values()
    assert found == {row.code: (str(row.http_status), row.message) for row in catalogue}


def test_the_bank_codes_are_those_of_the_models() -> None:
    found = re.findall(r"`([A-Z]{3})`", INTERFACE.below("Bank codes").replace("`nw`", ""))

    assert tuple(found) == vocabulary.BANKS


def test_the_bill_products_have_their_account_prefixes() -> None:
    found = {row[0]: row[1] for row in rows(INTERFACE.below("Bill product codes"))[2:]}

    assert found == vocabulary.ACCOUNT_PREFIX


def test_the_network_and_card_codes_are_those_of_the_models() -> None:
    found = re.findall(r"`([A-Z]{3})`", INTERFACE.below("Network and card codes"))

    names = (*vocabulary.MOBILE_NETWORKS, vocabulary.HOSTED_CARD, *vocabulary.CARD_BRANDS)
    assert tuple(found) == (*names, *vocabulary.CARD_CURRENCIES)


def test_the_test_cards_are_the_defaults() -> None:
    table = rows(INTERFACE.section("sandbox.6"))[2:]
    found = {number: brand for brand, cards in table for number in re.findall("[0-9]{16}", cards)}

    assert found == Settings().test_cards


def test_the_characters_that_count_twice_are_named() -> None:
    section = INTERFACE.below("Pages and encoding")
    found = set(re.findall("`([^`\n])`", section)) | {"\f"}

    assert "form feed" in section
    assert found == GSM_EXTENSION


def test_every_path_of_the_interface_is_named() -> None:
    found = {row[1] for row in rows(INTERFACE.below("The twelve operations"))[2:]}

    assert found == set(build(Settings(store="memory:")).app[DISPATCHER].paths)


@pytest.mark.parametrize("endpoint", MODELS)
def test_the_fields_of_a_request_are_those_of_its_model(endpoint: str) -> None:
    tables = INTERFACE.section(endpoint)
    if issubclass(MODELS[endpoint], request_models.PaymentFields):
        tables = INTERFACE.below("Common fields of payments") + "\n" + tables
    # Field tables of requests have the column Required; those of answers do not.
    required = {row[0]: row[2] for row in rows(tables) if len(row) == 4}
    del required["Field"]

    for model in (MODELS[endpoint], *(ALSO_ENDPOINT_4 if endpoint == "endpoint.4" else ())):
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        assert set(required) == set(fields)
        for name, field in fields.items():
            assert (required[name] == "yes") is field.is_required(), name


# --- Examples ------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """The answer to a command: the HTTP status and the body."""

    status: int
    body: Any


async def run(sandbox: Sandbox, command: str) -> Answer:
    """Send the request of a curl command to this gateway, and return the answer."""
    words = shlex.split(command.replace("\\\n", " "))
    options = dict(pairwise(words))
    (address,) = (word for word in words if word.startswith(ADDRESS))
    data = options.get("-d", "").replace(ADDRESS, sandbox.url)
    headers = {"User-Agent": "curl/8"}
    if "-u" in options:
        headers["Authorization"] = basic(*options["-u"].split(":"))
    method = options.get("-X") or ("POST" if data else "GET")
    url = address.replace(ADDRESS, sandbox.url)
    async with sandbox.session.request(method, url, data=data or None, headers=headers) as answer:
        text = await answer.text()
        return Answer(answer.status, json.loads(text.replace(sandbox.url, ADDRESS)))


def shape(document: object) -> str:
    """Return JSON in lines, without values that differ in each run; the order of fields counts."""
    return VARYING.sub("*", json.dumps(document, ensure_ascii=False, indent=1))


async def run_all(sandbox: Sandbox, of: Page) -> Sequence[tuple[str, Answer, Answer]]:
    """Send every command of a page, a second apart; return each with the page's and its answer."""
    found = []
    for command, status, body in EXAMPLE.findall(of.text):
        if "clock/advance" not in command:  # it runs the jobs of the command before it
            await sandbox.advance(seconds=1)
        says = Answer(int(status), json.loads(body))
        found.append((command, says, await run(sandbox, command)))
    return found


@pytest.mark.parametrize("of", [INTERFACE, CONTROL], ids=lambda of: of.name)
async def test_a_command_gets_the_answer_below_it(sandbox: Sandbox, of: Page) -> None:
    assert len(re.findall("^curl ", of.text, re.MULTILINE)) == len(EXAMPLE.findall(of.text)) > 10

    for command, says, came in await run_all(sandbox, of):
        assert came.status == says.status, command
        assert shape(came.body) == shape(says.body), command


@pytest.mark.parametrize("profile", Profile)
async def test_a_profile_is_shown_as_it_is_sent(
    start_sandbox: StartSandbox, profile: Profile
) -> None:
    sandbox = await start_sandbox(callback_profile=profile)
    (example,) = re.findall(
        r"^```json\n(.*?)^```$", INTERFACE.below(f"Profile `{profile}`"), re.MULTILINE | re.DOTALL
    )
    (collection,) = (text for text, *_ in EXAMPLE.findall(INTERFACE.text) if '"T1001",' in text)

    await run(sandbox, collection)
    await sandbox.advance(seconds=1)

    assert shape(await sandbox.callback()) == shape(json.loads(example))


async def test_the_callbacks_have_what_the_table_of_operations_says(sandbox: Sandbox) -> None:
    table = rows(INTERFACE.below("Profile `trans`"))
    says = {row[0].split(",")[0].strip("`"): tuple(row[1:]) for row in table if "T10" in row[0]}

    await run_all(sandbox, INTERFACE)
    await sandbox.advance(seconds=5)

    fields = ("customer_number", "nw", "payment_mode")
    bodies = [message["json"] for message in await sandbox.inbox()]
    came = {body["trans_ref"]: tuple(body[name] for name in fields) for body in bodies}
    assert came == says
    assert len(says) == 6


@pytest.mark.parametrize("of", [INTERFACE, page("callbacks.md")], ids=lambda of: of.name)
async def test_the_signature_example_knows_a_genuine_callback(sandbox: Sandbox, of: Page) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", of.text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 -- our own page
    await sandbox.collect(nickname="Ɛsi")
    await sandbox.advance(seconds=1)
    (message,) = await sandbox.inbox()

    body, signature = message["body"].encode(), message["headers"]["x-service-signature"]

    assert names["is_genuine"](body, signature, "sandbox_secret")
    assert not names["is_genuine"](body + b" ", signature, "sandbox_secret")


# --- docs/control-api.md -------------------------------------------------------------------------


def routes() -> set[str]:
    """Method and path of every route of the control API."""
    return {
        f"{route.method.replace(ANY_METHOD, 'ANY')} {route.path}"
        for route in build(Settings(store="memory:")).app[ROUTES]()
        if route.access is not Access.CLIENT
    }


def unnamed(path: str) -> str:
    """A path whose variables have no names."""
    return re.sub(r"\{\w+\}", "{}", path)


def test_the_control_api_has_the_routes_of_the_page_and_no_others() -> None:
    named = re.findall(r"^\| `([A-Z]+ /_sandbox/[^`]*)` \|", CONTROL.text, re.MULTILINE)

    assert len(routes()) > 40
    assert {unnamed(each) for each in named} == {unnamed(each) for each in routes()}
    assert len(named) == len(set(named))


def test_the_table_of_errors_is_the_catalogue() -> None:
    table = {
        code: (int(status), when)
        for status, codes, when in rows(CONTROL.below("Errors"))[2:]
        for code in re.findall(r"\w+", codes)
    }

    assert {code: status for code, (status, _) in table.items()} == {
        error.code: error.status for error in errors.CATALOGUE
    }
    for error in errors.CATALOGUE:
        says = table[error.code][1]
        assert says == error.when.strip("`") or says.startswith("see "), error


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("Requests", journal.SHOWN_FIELDS),
        ("Transactions", transactions.SHOWN_FIELDS),
        ("Callbacks", (*callbacks.SHOWN_FIELDS, *DeliveryAttempt._fields)),
        ("SMS", messages.SHOWN_FIELDS),
        ("Inbox", inbox.SHOWN_FIELDS),
        ("Events", tuple(events.EventType)),
    ],
)
def test_the_fields_of_a_record_are_named(heading: str, fields: tuple[str, ...]) -> None:
    section = CONTROL.below(heading)

    assert [name for name in fields if f"`{name}`" not in section] == []


def inputs(
    base: type[Input] = Input,
) -> Iterator[type[Input]]:
    for model in base.__subclasses__():
        yield model
        yield from inputs(model)


def test_every_field_that_the_control_api_takes_is_named() -> None:
    prose = re.sub(r"^```.*?^```$", "", CONTROL.text, flags=re.MULTILINE | re.DOTALL)
    words = {word for span in re.findall("`[^`]+`", prose) for word in re.findall("[a-z_]+", span)}
    taken = {name for model in inputs() for name in model.model_fields}

    assert {"match", "timeout_s", "before_response", "retry_after_s"} <= taken
    assert taken - words == set()


def test_every_field_of_a_rule_has_a_row() -> None:
    outcome = {f"outcome.{name}" for name in OutcomeBody.model_fields}
    callback = {f"callback.{name}" for name in BehaviourBody.model_fields}
    override = {*OverrideBody.model_fields, *outcome, *callback} - {"outcome", "callback"}

    for heading, wanted in (
        ("Match", set(MatchBody.model_fields)),
        ("Overrides", override),
        ("Faults", set(FaultBody.model_fields)),
    ):
        assert wanted - {row[0] for row in rows(CONTROL.below(heading))} == set()


def commands(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}", command


def test_every_command_and_option_is_named() -> None:
    section = page("command-line.md").text
    found = dict(commands(main))

    assert {"serve", "callbacks resend", "config init"} <= set(found)
    assert [name for name in found if not re.search(rf"`{name}[` ]", section)] == []
    options = {
        option
        for command in (main, *found.values())
        for param in command.params
        if isinstance(param, click.Option)
        for option in (*param.opts, *param.secondary_opts)
    }
    assert {option for option in options if not re.search(rf"`{option}[` ]", section)} == set()
