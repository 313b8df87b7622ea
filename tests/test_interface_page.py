"""docs/interface.md and docs/control-api.md are complete, and their examples are real."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import click
import pytest

from sandbox_sim.bootstrap import build
from sandbox_sim.cli import main
from sandbox_sim.explanations import rules
from sandbox_sim.records import callbacks
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.schema import Settings
from sandbox_sim.sms.sms_encoding import GSM_EXTENSION
from sandbox_sim.values import response_codes, vocabulary
from sandbox_sim.web.api import request_models
from sandbox_sim.web.app import DISPATCHER, ROUTES
from sandbox_sim.web.routes import Access
from tests.conftest import Sandbox, StartSandbox
from tests.docs.commands import ADDRESS, sent
from tests.docs.pages import Page, slug

# Text that differs in each run: identifiers, times, durations, signatures, tokens.
VARYING = re.compile(
    r"2[0-9]{3}-[0-9-]{5}T[0-9:.]+Z|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|\b[0-9a-f]{8}-[0-9a-f]+\b"
    r"|\b[0-9]{11}\b|(?<=\"id\": )[0-9]+|(?<=\"next\": )[0-9]+"
    r"|(?<=/pay/)[\w-]{22}|(?<=\"duration_ms\": )[0-9.]+|(?<=\"shift_s\": )[0-9.]+"
)
# A command without an answer below it gets the one of a collection.
EXAMPLE = re.compile(
    r"^```sh\n(curl (?:(?!^```).)*)^```$(?:\n\nHTTP ([0-9]{3}):\n```json\n(.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
PENDING = (
    '{"response_message": "Request successfully received for processing", "response_code": "202"}'
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PAYMENTS: dict[str, list[type[request_models.OperationBody]]] = {
    "collection": [request_models.Collection],
    "card": [request_models.TestCardCollection],
    "deposit": [request_models.Deposit],
    "payout": [request_models.MobilePayout, request_models.BankPayout, request_models.CardPayout],
    "bill": [request_models.Bill],
    "airtime": [request_models.Airtime],
}
QUERIES: dict[str, type[request_models.OperationBody]] = {
    "endpoint.7": request_models.TransactionStatusQuery,
    "endpoint.8": request_models.BalanceQuery,
    "endpoint.9": request_models.SmsSend,
    "endpoint.10": request_models.SmsBulk,
    "endpoint.11": request_models.SmsHistory,
    "endpoint.12": request_models.OperationBody,
}


INTERFACE, CONTROL = Page("docs/interface.md"), Page("docs/control-api.md")


def named_anchors(of: Page) -> list[str]:
    """The explicit anchors."""
    return re.findall(r'<a id="([^"]+)"></a>', of.text)


def anchored(anchor: str) -> str:
    """The text from an anchor of the interface to the next heading, without the anchor's own."""
    pattern = rf'<a id="{re.escape(anchor)}"></a>\n+(?:#[^\n]*\n)?(.*?)(?=^#+ |\Z)'
    found = re.search(pattern, INTERFACE.text, re.MULTILINE | re.DOTALL)
    assert found, f"{INTERFACE} has no anchor {anchor}"
    return found[1]


def rows(section: str) -> list[list[str]]:
    """The cells of every table row, without backticks."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


# --- docs/interface.md ---------------------------------------------------------------------------


def test_every_rule_of_the_interface_has_an_anchor() -> None:
    wanted = [rule.id for rule in rules() if not re.fullmatch("D[0-9]+", rule.id)]

    assert set(wanted) - set(named_anchors(INTERFACE)) == set()
    assert len(wanted) > 40


@pytest.mark.parametrize("of", [INTERFACE, CONTROL], ids=str)
def test_anchors_are_unique_and_cited_decisions_exist(of: Page) -> None:
    for anchors in (named_anchors(of), [slug(each) for each in HEADING.findall(of.text)]):
        assert sorted(anchors) == sorted(set(anchors))
    cited = set(re.findall(r"\bD[0-9]+\b", of.text))
    assert cited
    assert cited <= {rule.id for rule in rules()}


def test_the_tables_of_the_interface_page_match_the_code() -> None:
    codes = {row[0]: (row[1], row[3]) for row in rows(anchored("codes"))[2:]}
    catalogue = response_codes.CATALOGUE.values()
    assert codes == {row.code: (str(row.http_status), row.message) for row in catalogue}

    banks = re.findall(r"`([A-Z]{3})`", INTERFACE.section("Bank codes").replace("`nw`", ""))
    assert tuple(banks) == vocabulary.BANKS
    products = {row[0]: row[1] for row in rows(INTERFACE.section("Bill product codes"))[2:]}
    assert products == vocabulary.ACCOUNT_PREFIX
    words = set(re.findall(r"`([A-Z]{3})`", INTERFACE.section("Fields of each payment")))
    networks = {*vocabulary.MOBILE_NETWORKS, vocabulary.HOSTED_CARD, *vocabulary.CARD_BRANDS}
    assert words >= networks | {*vocabulary.CARD_CURRENCIES}

    table = rows(anchored("sandbox.6"))[2:]
    cards = {number: brand for brand, each in table for number in re.findall("[0-9]{16}", each)}
    assert cards == Settings().test_cards
    encoding = INTERFACE.section("Pages and encoding")
    assert "form feed" in encoding
    assert set(re.findall("`([^`\n])`", encoding)) | {"\f"} == GSM_EXTENSION
    paths = {row[2] for row in rows(INTERFACE.section("The twelve operations"))[2:]}
    assert paths == set(build(Settings(store="memory:")).app[DISPATCHER]().paths)


def required_of(model: type[request_models.OperationBody]) -> dict[str, bool]:
    """Whether each field of a model is required, by its name in a request."""
    fields = model.model_fields.items()
    return {field.alias or name: field.is_required() for name, field in fields}


@pytest.mark.parametrize("payment", PAYMENTS)
def test_the_fields_of_a_payment_match_its_model(payment: str) -> None:
    common = {row[0]: row[2] for row in rows(INTERFACE.section("Common fields of payments"))[2:]}
    table = rows(INTERFACE.section("Fields of each payment"))[2:]
    (row,) = (row for row in table if row[0].startswith(f"[{payment}]"))
    further = re.findall(r"(?:^|; )`?(\w+)`?(?=[:;])", f"{row[4]};")
    expected = {name: value == "yes" for name, value in common.items()}
    expected |= dict.fromkeys(further, True)
    expected["payment_option"] = not row[2].startswith("optional")

    for model in PAYMENTS[payment]:
        assert expected == required_of(model)


@pytest.mark.parametrize("endpoint", QUERIES)
def test_the_fields_of_a_request_match_its_model(endpoint: str) -> None:
    # Field tables have four columns.
    table = [row for row in rows(anchored(endpoint)) if len(row) == 4]
    expected = {row[0]: row[2] == "yes" for row in table if row[0] != "Field" and row[0] != "---"}
    for fields in re.findall(r"^Required fields: (.*)\.$", anchored(endpoint), re.MULTILINE):
        expected |= dict.fromkeys(re.findall(r"\w+", fields), True)

    assert expected == required_of(QUERIES[endpoint])


# --- Examples ------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """The answer to a command: the HTTP status and the body."""

    status: int
    body: Any


async def run(sandbox: Sandbox, command: str) -> Answer:
    """Send the request of a curl command to this gateway, and return the answer."""
    answer, text = await sent(sandbox, shlex.split(command.replace("\\\n", " ")))
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
        expected = Answer(int(status or 202), json.loads(body or PENDING))
        found.append((command, expected, await run(sandbox, command)))
    return found


@pytest.mark.parametrize("of", [INTERFACE, CONTROL], ids=str)
async def test_a_command_gets_the_answer_below_it(sandbox: Sandbox, of: Page) -> None:
    assert len(re.findall("^curl ", of.text, re.MULTILINE)) == len(EXAMPLE.findall(of.text)) > 1

    for command, expected, answer in await run_all(sandbox, of):
        assert answer.status == expected.status, command
        assert shape(answer.body) == shape(expected.body), command


async def test_the_example_of_a_profile_is_the_callback_that_is_sent(
    start_sandbox: StartSandbox,
) -> None:
    (collection,) = (text for text, *_ in EXAMPLE.findall(INTERFACE.text) if '"T1001",' in text)
    for profile in (Profile.TRANS, Profile.FLAT, Profile.EVENT):
        section = INTERFACE.section(f"Profile `{profile}`")
        (example,) = re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        sandbox = await start_sandbox(callback_profile=profile)

        await run(sandbox, collection)
        await sandbox.advance(seconds=1)

        assert shape(await sandbox.callback()) == shape(json.loads(example))


async def test_callbacks_have_the_values_in_the_table_of_operations(sandbox: Sandbox) -> None:
    table = rows(INTERFACE.section("Profile `trans`"))
    start = table.index(["Request", "customer_number", "nw", "payment_mode"]) + 2
    expected = {name: tuple(row[1:]) for row in table[start:] for name in row[0].split(", ")}

    for name in expected:
        send = getattr(sandbox, "collect" if name == "collection" else name)
        await send(transaction_id=name)
    await sandbox.advance(seconds=5)

    fields = ("customer_number", "nw", "payment_mode")
    bodies = [message["json"] for message in await sandbox.inbox()]
    found = {body["trans_ref"]: tuple(body[name] for name in fields) for body in bodies}
    assert found == expected
    assert len(expected) == 6


async def test_the_signature_example_recognizes_a_genuine_callback(sandbox: Sandbox) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", Page("docs/callbacks.md").text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 -- our own page
    await sandbox.collect(nickname="Ɛsi")
    await sandbox.advance(seconds=1)
    (message,) = await sandbox.inbox()

    body, signature = message["body"].encode(), message["headers"]["x-service-signature"]

    assert names["is_genuine"](body, signature, "sandbox_secret")
    assert not names["is_genuine"](body + b" ", signature, "sandbox_secret")


# --- docs/control-api.md -------------------------------------------------------------------------


# The files of the browser pages, which docs/control-api.md does not list.
FILE = re.compile(r"\.(?:js|css|svg)$")


def paths() -> set[str]:
    """Every path below the prefix of the control API, except the files of its pages."""
    return {
        route.path.removeprefix("/_sandbox/")
        for route in build(Settings(store="memory:")).app[ROUTES]()
        if route.access is not Access.CLIENT and not FILE.search(route.path)
    } - {""}


def unnamed(path: str) -> str:
    """A path whose variables have no names."""
    return re.sub(r"\{\w+\}", "{}", path)


def written_out(path: str) -> Iterator[str]:
    """Each path that the page names: `{records}` is four of them, `[…]` is optional."""
    for records in ("requests", "transactions", "callbacks", "sms"):
        named = path.replace("{records}", records)
        yield re.sub(r"[\[\]]", "", named)
        if "[" in named:
            yield re.sub(r"\[.*\]", "", named)
        if named == path:
            return


def test_the_control_api_page_lists_exactly_the_paths_and_states() -> None:
    table = re.findall(r"^\|.*\| (.*) \|$", CONTROL.section("Paths"), re.MULTILINE)[1:]
    named = [path for row in table for path in re.findall("`([^`]+)`", row)]

    found = {unnamed(path) for each in named for path in written_out(each)}
    assert len(found) > 40
    assert found == {unnamed(path) for path in paths()}
    assert len(named) == len(set(named))
    states = [row[0] for row in rows(CONTROL.section("Callbacks"))[2:]]
    assert states == list(callbacks.DeliveryState)


def commands(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}", command


def test_the_command_line_page_names_every_command_and_option() -> None:
    section = Page("docs/command-line.md").text
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
