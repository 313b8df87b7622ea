"""`sandbox-sim doctor` and profiles: which one it checks, and which ones pay an order."""

import asyncio
import json
import os
import shlex
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sandbox_sim.cli.commands import doctor
from sandbox_sim.cli.commands.doctor import fill
from tests.cli.receivers import Listen, ask, is_signed, report
from tests.sample_records import callback

Body = Mapping[str, Any]
HANGS = "sleep 60; : {reference}"


def taking(accepts: Callable[[Body], bool]) -> Callable[[web.Request], Any]:
    """A receiver that answers 400 to bodies that it does not accept."""

    async def receive(request: web.Request) -> web.Response:
        if not await is_signed(request):
            return web.Response(status=401)
        return web.Response(status=200 if accepts(await request.json()) else 400)

    return receive


@pytest.mark.decision("D27")
class TestJudgedProfiles:
    async def test_a_correct_receiver_of_the_default_profile_is_healthy(
        self, listen: Listen
    ) -> None:
        url = await listen(taking(lambda body: "/" in body.get("trans_status", "")))

        result, document = await report(url)

        assert (result.exit_code, result.stderr) == (0, "")
        assert (document["healthy"], document["judged"]) == (True, ["trans"])
        assert document["counts"]["note"] == 4
        verdicts = {
            row["profile"]: row["verdict"]
            for row in document["checks"]
            if row["check"] == "successful"
        }
        assert verdicts == {"trans": "ok"} | dict.fromkeys(
            ("trans_bare", "flat", "event", "superset"), "note"
        )

    async def test_a_setting_an_address_or_an_option_chooses_the_profile(
        self, listen: Listen, tmp_path: Path
    ) -> None:
        file = tmp_path / "sandbox_sim.toml"
        file.write_text('callback_profile = "flat"\n', "utf-8")
        flat = await listen(taking(lambda body: "transaction_id" in body))
        event = await listen(taking(lambda body: "event_type" in body))

        configured, found = await report(flat, "--config", file)
        assert (configured.exit_code, found["judged"], found["profiles"][0]) == (
            0,
            ["flat"],
            "flat",
        )

        globs = json.dumps({f"{event}*": "event"})
        of_address, found = await report(event, SANDBOX_SIM_CALLBACK_PROFILES=globs)
        assert (of_address.exit_code, found["judged"]) == (0, ["event"])

        named, found = await report(flat, "--profile", "flat", "--profile", "trans")
        assert (named.exit_code, found["judged"]) == (1, ["flat", "trans"])
        assert found["profiles"] == ["flat", "trans"]

    async def test_the_report_says_how_to_choose_a_profile(self, listen: Listen) -> None:
        url = await listen(taking(lambda body: True))

        lines = (await ask("doctor", url)).stdout.splitlines()

        assert "callback_profile is trans. Other receivers may need:" in lines
        chosen = [line.split() for line in lines if "callback_profile = " in line]
        assert [(words[0], words[-1]) for words in chosen] == [
            ("compares", "trans_bare"),
            ("reads", "flat"),
            ("unsure:", "superset"),
        ]


def paying(folder: Path, paid_reference: Callable[[Body], str | None]) -> Any:
    """A receiver that acknowledges each genuine callback, and pays orders that it knows."""

    async def receive(request: web.Request) -> web.Response:
        if not await is_signed(request):
            return web.Response(status=401)
        reference = paid_reference(await request.json())
        if reference is not None:
            (folder / reference).touch()
        return web.Response()

    return receive


def compares_trans_status(body: Body) -> str | None:
    return body["trans_ref"] if body.get("trans_status") == "000" else None


def reads_status(body: Body) -> str | None:
    paid = body.get("status") == "000" and "event_type" not in body
    return body["transaction_id"] if paid else None


def reads_no_status(body: Body) -> str | None:
    return body.get("trans_ref")


@pytest.mark.decision("D27")
class TestProfilesThatPay:
    @pytest.fixture
    def paid(self, tmp_path: Path) -> str:
        """A command that checks whether the order is paid."""
        return f"test -e {shlex.quote(str(tmp_path))}/{{reference}}"

    @pytest.mark.parametrize(
        ("reads", "works_with"),
        [
            (compares_trans_status, ["trans_bare", "superset"]),
            (reads_status, ["flat", "superset"]),
        ],
    )
    async def test_the_report_names_the_profiles_that_pay_and_the_setting(
        self,
        listen: Listen,
        tmp_path: Path,
        paid: str,
        reads: Callable[[Body], str | None],
        works_with: list[str],
    ) -> None:
        url = await listen(paying(tmp_path, reads))

        result = await ask("doctor", url, "--paid", paid)
        _, document = await report(url, "--paid", paid)

        assert (result.exit_code, result.stderr) == (1, "wrong: paid\n")
        assert result.stdout.splitlines()[-2:] == [
            f"works with: {', '.join(works_with)}",
            "set callback_profile = superset",
        ]
        assert document["works_with"] == works_with
        assert document["set"] == {"callback_profile": "superset"}

    async def test_a_configured_profile_that_pays_is_kept(
        self, listen: Listen, tmp_path: Path, paid: str
    ) -> None:
        url = await listen(paying(tmp_path, reads_status))

        result = await ask("doctor", url, "--paid", paid, SANDBOX_SIM_CALLBACK_PROFILE="flat")

        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.splitlines()[-3:] == [
            "works with: flat, superset",
            "callback_profile = flat is right",
            "nothing is wrong",
        ]

    async def test_no_profile_works_if_the_receiver_also_pays_failed_payments(
        self, listen: Listen, tmp_path: Path, paid: str
    ) -> None:
        url = await listen(paying(tmp_path, reads_no_status))

        result, document = await report(url, "--paid", paid)

        assert (result.exit_code, result.stderr) == (1, "wrong: failed not paid\n")
        assert document["works_with"] == []

    async def test_the_setting_of_the_address_is_named(
        self, listen: Listen, tmp_path: Path, paid: str
    ) -> None:
        url = await listen(paying(tmp_path, reads_status))
        globs = json.dumps({"*/callback": "event"})

        result = await ask("doctor", url, "--paid", paid, SANDBOX_SIM_CALLBACK_PROFILES=globs)

        assert 'set callback_profiles."*/callback" = superset' in result.stdout

    async def test_orders_are_created_before_their_callback(
        self, listen: Listen, tmp_path: Path
    ) -> None:
        folder = shlex.quote(str(tmp_path))

        def of_known_order(body: Body) -> str | None:
            reference = reads_status(body)
            known = reference is not None and (tmp_path / f"order-{reference}").exists()
            return reference if known else None

        url = await listen(paying(tmp_path, of_known_order))
        order = f"touch {folder}/order-{{reference}}"
        paid = f"test -e {folder}/{{transaction_id}}"

        without = await report(url, "--paid", paid)
        with_orders = await report(url, "--paid", paid, "--order", order)

        assert without[1]["works_with"] == []
        assert with_orders[1]["works_with"] == ["flat", "superset"]


class TestShellCommand:
    def test_an_id_is_quoted_as_one_argument(self) -> None:
        of = callback(transaction_id="T1; rm -rf $HOME '`")

        command = fill("echo {reference} {transaction_id} '{print}'", of)

        words = shlex.split(command)
        assert words == ["echo", of.transaction_id, of.transaction_id, "{print}"]

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("--paid", "no-such-command {reference}"), "--paid cannot be run: "),
            (
                ("--paid", "test -e {reference}", "--order", "echo no {reference} >&2; exit 3"),
                "--order exits with 3: no DOCTOR-",
            ),
            (("--paid", HANGS), f"a command did not end within 0.1 s: {HANGS}"),
        ],
    )
    async def test_a_command_that_fails_or_does_not_end_is_named(
        self, listen: Listen, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
    ) -> None:
        if HANGS in words:
            monkeypatch.setattr(doctor, "COMMAND_TIMEOUT_S", 0.1)

        receiver = await listen(taking(lambda body: True))
        result = await asyncio.wait_for(ask("doctor", receiver, *words), 15)

        assert result.exit_code == 1
        assert says in result.stderr

    async def test_a_command_has_ended_though_its_child_keeps_stderr_open(
        self, listen: Listen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(doctor, "COMMAND_TIMEOUT_S", 5)
        pids = tmp_path / "pids"
        receiver = await listen(taking(lambda body: True))

        leaves_a_child = f"sleep 60 & echo $! >> {shlex.quote(str(pids))}; : {{reference}}"
        try:
            result = await ask("doctor", receiver, "--paid", leaves_a_child)
        finally:
            for pid in pids.read_text().split():
                os.kill(int(pid), signal.SIGKILL)

        assert result.stderr == "wrong: failed not paid\n"
