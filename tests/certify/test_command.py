"""`sandbox-sim certify`: the files that it reads and writes, its options and exit codes."""

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sandbox_sim.certify.bench import free_port
from sandbox_sim.certify.configuration import Configuration, load
from sandbox_sim.certify.files import FileError
from sandbox_sim.cli.commands.certify import Snapshot
from sandbox_sim.settings.schema import certify_report
from tests.certify.broken_shops import pays_at_015
from tests.certify.shops import RunningShop
from tests.cli.processes import in_process


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[RunningShop]:
    """The demo shop runs, and certify.toml is for it."""
    shop = RunningShop(lambda _: None)
    ask = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
    document = f"""
[gateway]
port = %d
callback_profile = "event"
[application]
polls_every = "300ms"
gives_up_after = "800ms"
reacts_within = "200ms"
[order]
url = "{shop.url}/buy/airtime"
pattern = 'Location: /orders/([\\w-]+)'
[order.headers]
X-Api-Key = "a-header-of-ours"
[order.form]
amount = "{{amount}}"
airtime_nw = "{{network}}"
airtime_phone = "{{phone}}"
name = "Ama Mensah"
phone = "{{phone}}"
nw = "{{network}}"
pay_by = "mobile_money"
[state]
command = "{sys.executable} -c '{ask}' {shop.url}/state/{{order}}"
field = "state"
[words]
paid = ["processing"]
pending = ["pending_payment"]
failed = ["failed"]
"""
    with free_port() as port, shop.running(f"http://127.0.0.1:{port}"):
        (tmp_path / "certify.toml").write_text(document % port)
        yield shop


def run(*words: str) -> Result:
    return in_process("certify", *words)


def test_init_writes_a_valid_file_and_never_overwrites_one(tmp_path: Path) -> None:
    assert run("init").exit_code == 0
    assert isinstance(load(tmp_path / "certify.toml"), Configuration)

    again = run("init")

    assert (again.exit_code, again.stderr) == (
        1,
        "certify.toml already exists and was not changed\n",
    )


@pytest.mark.parametrize("option", ["--html", "--junit"])
def test_a_report_that_cannot_be_written_ends_the_run_before_any_case(
    shop: RunningShop, tmp_path: Path, option: str
) -> None:
    result = run("--case", "declined_at_once", option, "no/such/folder")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "no/such/folder cannot be written: No such file or directory\n"


def test_a_chosen_case_runs_after_the_controls(shop: RunningShop, tmp_path: Path) -> None:
    result = run("--case", "declined_at_once", "--junit", "junit.xml", "--html", "page.html")

    assert [line.split(":")[0] for line in result.stdout.splitlines()[1:-1]] == [
        "passed          control_paid",
        "passed          control_unpaid",
        "passed          declined_at_once",
    ]
    assert result.exit_code == 0, result.output
    assert 'tests="3"' in (tmp_path / "junit.xml").read_text()
    page = (tmp_path / "page.html").read_text()
    assert ">Certified</h1>" in page
    assert certify_report().read_text() == page


def test_watch_repeats_the_failed_cases_after_a_change_and_then_runs_all(
    shop: RunningShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.shop is not None
    checkout: Any = shop.shop.checkout
    mended = checkout._apply_answer
    pays_at_015(shop.shop)

    def mend(folder: Path, before: Snapshot, report: Path) -> None:
        assert Path("certify.toml") in before
        assert report == Path("page.html")
        checkout._apply_answer = mended

    monkeypatch.setattr("sandbox_sim.cli.commands.certify.wait_for_change", mend)
    result = run(
        *("--watch", "--html", "page.html"),
        *("--case", "declined_at_once", "--case", "number_refused"),
    )

    verdicts = [
        line.split(":")[0]
        for line in result.stdout.splitlines()
        if line[:6] in {"passed", "FAILED"}
    ]
    controls = ["passed          control_paid", "passed          control_unpaid"]
    assert verdicts == [
        *(*controls, "FAILED          declined_at_once", "passed          number_refused"),
        *(*controls, "passed          declined_at_once"),
        *(*controls, "passed          declined_at_once", "passed          number_refused"),
    ]
    assert "waiting for a source file to change in this folder; Ctrl-C ends" in result.stdout
    assert result.exit_code == 0


def test_json_has_the_whole_run_and_nothing_else(shop: RunningShop) -> None:
    result = run("certify.toml", "--case", "number_refused", "--seed", "3", "--json")

    document = json.loads(result.stdout)
    assert document["seed"] == 3
    assert [each["verdict"] for each in document["cases"]] == ["passed"] * 3
    assert "a-header-of-ours" not in result.stdout
    assert "sandbox_secret" not in result.stdout


def test_a_case_that_may_need_more_than_the_limit_is_inconclusive_with_the_figure(
    shop: RunningShop,
) -> None:
    result = run("--limit", "6s", "--case", "swapped_callbacks")

    reason = "may need 16.8s of real time for it, and the limit of the run is 6s; raise limit"
    assert f"{reason}: swapped_callbacks\n" in result.stdout
    assert result.exit_code == 3


def test_cases_that_could_count_no_receipts_are_named(shop: RunningShop) -> None:
    """A shop that delivers at each callback passes them."""
    result = run("--case", "callback_doubled", "--html", "report.html")

    reason = "receipts, because application.receipts is not set"
    assert f"not counted     {reason}: callback_doubled\n" in result.stdout
    assert f">Not counted: {reason}.</p>" in Path("report.html").read_text()
    assert result.exit_code == 0


def test_the_reason_names_the_address_to_which_no_request_came(shop: RunningShop) -> None:
    text = Path("certify.toml").read_text()
    port = text.split("port = ")[1].split()[0]

    with free_port() as other:
        Path("certify.toml").write_text(text.replace(f"port = {port}", f"port = {other}"))
        result = run("--case", "success")

    assert f"no request for service 55 came to http://127.0.0.1:{other}: are " in result.stdout
    together = "the control control_paid did not pass, so this would say nothing: success\n"
    assert f"INCONCLUSIVE    {together}" in result.stdout


def test_the_reason_names_the_service_that_the_application_does_not_use(
    shop: RunningShop,
) -> None:
    text = Path("certify.toml").read_text()
    Path("certify.toml").write_text(
        text.replace('amount = "', 'service = "{service_id}"\namount = "')
    )

    result = run("--case", "success")

    first, *rest = result.stdout.splitlines()
    assert first.endswith(", services 55 to 58")
    assert "no request for service 56 came to http://" in rest[1]
    assert result.exit_code == 1


def test_an_unreachable_application_makes_the_cases_inconclusive() -> None:
    run("init")
    text = Path("certify.toml").read_text().replace("8000", "1")

    with free_port() as port:
        Path("certify.toml").write_text(text.replace("8233", str(port)))
        result = run()

    assert "POST http://127.0.0.1:1/orders failed: Connection refused" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("29 inconclusive, 13 not applicable")
    assert result.exit_code == 3


def test_a_port_that_is_taken_is_named() -> None:
    run("init")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = Path("certify.toml").read_text()
        Path("certify.toml").write_text(text.replace("8233", str(taken.getsockname()[1])))
        result = run()

    assert result.exit_code == 2
    assert result.stderr.startswith("certify.toml: gateway.port: the gateway cannot start: ")


@pytest.mark.parametrize(
    ("old", "new", "code", "problem"),
    [
        ("port = 8233", "prot = 1", 2, "prot (from [gateway] of shop.toml): there is no such"),
        (
            'limit = "10m"',
            'not_applicable = { sucess = "no" }',
            2,
            "shop.toml: not_applicable: there is no case sucess; did you mean success?",
        ),
        (
            "http://127.0.0.1:8000",
            "http://127.0.0.1:1",
            3,
            'not applicable  application.receipts in shop.toml is not "sms": receipt_refused\n',
        ),
    ],
)
def test_messages_name_the_file_that_was_given(old: str, new: str, code: int, problem: str) -> None:
    run("init", "shop.toml")
    text = Path("shop.toml").read_text().replace(old, new)
    with free_port() as port:
        Path("shop.toml").write_text(text.replace("8233", str(port)))
        result = run("shop.toml", "--case", "receipt_refused")

    assert (result.exit_code, problem in result.output) == (code, True)
    assert "certify.toml" not in result.output


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["nothing.toml"], "nothing.toml: there is no such file; sandbox-sim certify init noth"),
        (["--case", "sucess"], "there is no case sucess; did you mean success?"),
        (["--at-once", "2"], "--at-once: cases that run at once have a gateway each, so order"),
        (["--limit", "soon"], 'must be a duration such as "500ms", "5s", '),
        (["--cases", "empty"], "has no case, a file that ends in .toml"),
    ],
)
def test_wrong_arguments_are_refused(words: list[str], problem: str, tmp_path: Path) -> None:
    run("init", "certify.toml")
    (tmp_path / "empty").mkdir()

    result = run(*words)

    assert problem in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('field = "state"', 'feld = "state"', "state.feld: there is no such field; did you mean"),
        ('field = "state"', "", "state: must say where the answer has the state"),
        ('field = "id"', "", "order: must say where its answer has the number of the order"),
        ('field = "id"', "pattern = '('", "order.pattern: is not a regular expression"),
        ('field = "id"', "pattern = 'x'", "order.pattern: must have one group in parentheses"),
        (
            '"{phone}", n',
            '"{telephone}", n',
            "order: there is no placeholder {telephone}; there are {phone}",
        ),
        ('url = "http://127.0.0.1:8000/orders"', "", "order: must have either url or command"),
        ("http://127.0.0.1:8000/orders", "127.0.0.1", "order.url: must be an address such as"),
        ('paid = ["paid"]', "", "words: must have the words for paid and for pending"),
        ('failed = ["failed"]', 'failed = ["paid"]', "'paid' stands for paid and for failed"),
        ('"10m"', '"10m"\nat_once = 2', "at_once: cases that run at once have a gateway each"),
        ('"10m"', '"ten"', 'limit: must be a duration such as "500ms"'),
        ("service_id = 55", "service_id = 59", "application.service_id: must not end in 9"),
        ("service_id = 55", f"service_id = {10**13}", "application.service_id: must be less"),
        ('"{phone}", n', '"{Phone}", n', "order: there is no placeholder {Phone}; there are {"),
        (
            "port = 8233",
            'port = "x"',
            "port (from [gateway] of certify.toml): must be a valid integer",
        ),
        (
            "port = 8233",
            "port = 0\nsettle_delay_ms = 2001",
            "settle_delay_ms of the gateway must be from 1 to 2000 for certify, not 2001",
        ),
    ],
)
def test_a_wrong_certify_toml_is_named_with_its_field(old: str, new: str, problem: str) -> None:
    run("init")
    text = Path("certify.toml").read_text()
    assert old in text
    Path("certify.toml").write_text(text.replace(old, new, 1))

    result = run()

    assert problem in result.stderr
    assert result.exit_code == 2


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbflimit = '5s'")

    with pytest.raises(FileError, match="order: is required"):
        load(tmp_path / "x.toml")
