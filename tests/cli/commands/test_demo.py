"""`sandbox-sim demo` as a process, and the settings that it chooses."""

import json
import re
import signal
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from sandbox_sim.cli.client import CommandFailed
from sandbox_sim.cli.commands.demo import (
    DemoReady,
    demo_settings,
    lan_address,
    settings_in_lan,
    terminal_qr_code,
)
from sandbox_sim.settings.loading import load
from tests.cli.processes import (
    SOON,
    end,
    ended,
    eventually,
    first_line,
    in_process,
    ready_url,
    running,
)

ROOT = Path(__file__).parents[3]
LAN = lan_address()
# any free ports
ARGUMENTS = ("--json", "demo", "--port", "0", "--shop-port", "0")
FORM = {
    "quantity": "1",
    "name": "Ama Mensah",
    "phone": "0244000001",
    "nw": "MTN",
    "pay_by": "mobile_money",
}


def test_a_purchase_completes_and_ctrl_c_ends_the_demo() -> None:
    with running(*ARGUMENTS, "--set", "settle_delay_ms=0", "--set", "approval=auto") as server:
        ready = json.loads(first_line(server))
        assert ready == {
            "url": f"http://127.0.0.1:{ready['port']}",
            "shop_url": ready["shop_url"],
            "port": ready["port"],
            "pid": server.pid,
        }
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", ready["shop_url"])

        form = urllib.parse.urlencode(FORM).encode()
        buy = f"{ready['shop_url']}/buy/cocoa"
        with urllib.request.urlopen(buy, form, timeout=SOON) as answer:  # noqa: S310 -- our own
            order = answer.url
        eventually(lambda: "<title>Processing" in page(order))

        begun = time.monotonic()
        code, out, err = end(server, signal.SIGINT)
        assert (code, out) == (130, "")
        assert "Traceback" not in err
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "lenient=true"),
        ("--set", "callback_profile=flat"),
        ("--config", ROOT / "fixtures" / "examples.toml"),  # its first credentials have a profile
    ],
)
def test_the_shop_reads_its_callbacks_whatever_profile_the_user_has_chosen(
    words: tuple[object, ...],
) -> None:
    own = ("--set", "settle_delay_ms=0", "--set", "approval=auto")
    with running(*ARGUMENTS, *own, *words) as server:
        shop_url = json.loads(first_line(server))["shop_url"]
        form = urllib.parse.urlencode(FORM).encode()
        with urllib.request.urlopen(f"{shop_url}/buy/cocoa", form, timeout=SOON) as answer:  # noqa: S310
            order = answer.url

        eventually(lambda: "<title>Processing" in page(order))

        assert "Callback: 000, Transaction Successful" in page(order)


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=SOON) as answer:  # noqa: S310 -- our own
        return str(answer.read().decode())


def test_the_text_output_has_the_addresses_and_sigterm_ends_the_demo() -> None:
    with running("demo", "--port", "0", "--shop-port", "0", "--store", "memory:") as server:
        ready_url(server)
        assert first_line(server).endswith("/screen\n")
        assert first_line(server).startswith("  shop: http://127.0.0.1:")

        code, _, err = end(server, signal.SIGTERM)

    assert (code, err) == (0, "")


def test_a_taken_port_of_the_shop_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = ended("demo", "--port", "0", "--shop-port", port)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"cannot listen on 127.0.0.1:{port}: ")
    assert f"--shop-port {port + 1}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(LAN is None, reason="this machine has no address in a network")
def test_a_phone_in_the_network_signs_in_by_the_scanned_link() -> None:
    with running(*ARGUMENTS[:2], "--lan", *ARGUMENTS[2:]) as server:
        ready = json.loads(first_line(server))
        phone = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        handset = f"{ready['url']}/_sandbox/handset/0244000001?alone"

        def as_browser() -> urllib.request.Request:
            return urllib.request.Request(handset, headers={"Accept": "text/html"})  # noqa: S310

        with phone.open(ready["phone_url"], timeout=SOON) as screen:
            assert screen.url == f"http://{LAN}:{ready['shop_url'].rpartition(':')[2]}/screen"
        with phone.open(as_browser(), timeout=SOON) as page:
            assert page.url == handset
            frames = page.headers["Content-Security-Policy"].partition("frame-ancestors ")[2]
            assert ready["shop_url"].removeprefix("http://") in frames
        with phone.open(ready["phone_url"], timeout=SOON) as again:
            assert again.url.endswith("/screen")

        with urllib.request.urlopen(as_browser(), timeout=SOON) as stranger:  # noqa: S310
            assert "/_sandbox/login?" in stranger.url
        other = ready["phone_url"].partition("code=")[0] + "code=guessed"
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(other, timeout=SOON)  # noqa: S310
        refused.value.close()


class TestLan:
    @pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
    def test_address_and_token_are_chosen_unless_the_user_sets_them(self, host: str) -> None:
        given = demo_settings(load()).model_copy(update={"host": host})
        own = {"host": "10.0.0.7", "control_token": "chosen"}

        chosen = settings_in_lan(given, "192.168.1.5")
        kept = settings_in_lan(demo_settings(load(flags=own)), "192.168.1.5")

        assert chosen.host == "192.168.1.5"
        assert len(chosen.token or "") > 20
        assert (kept.host, kept.token) == ("10.0.0.7", "chosen")

    def test_a_missing_address_is_named(self) -> None:
        with pytest.raises(CommandFailed, match=r"name it: --set host=192\.168\.1\.5"):
            settings_in_lan(demo_settings(load()), None)

    def test_the_code_of_the_link_is_drawn_for_a_terminal(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = settings_in_lan(demo_settings(load()), "192.168.1.5")

        DemoReady(settings, as_json=False, lan=True).show(
            8233, "http://192.168.1.5:8234", lambda target: f"/enter?to={target}"
        )

        shown = capsys.readouterr().out
        link = "http://192.168.1.5:8233/enter?to=http://192.168.1.5:8234/screen"
        assert f"or open {link}" in shown
        assert terminal_qr_code(link) in shown


@pytest.mark.parametrize("words", [(), ("--lan",)])
def test_production_is_refused_whose_payments_the_demo_would_keep_in_memory(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = tmp_path / "production.toml"
    file.write_text(
        'production = true\n[[credentials]]\nclient_key = "a"\nsecret_key = "b"\nmode = "P"\n'
        '[[credentials]]\nclient_key = "c"\nsecret_key = "d"\n',
        "utf-8",
    )

    refused = in_process("demo", "--port", "0", "--shop-port", "0", "--config", file, *words)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == "production: the demo is for the sandbox; leave out production\n"


def test_settings_of_the_user_win_over_those_of_the_demo(
    tmp_path: Path,
) -> None:
    file = tmp_path / "sandbox_sim.toml"
    file.write_text("sandbox_card_entry = false\n", "utf-8")
    store = "sqlite:/tmp/demo.sqlite3"

    own, given = demo_settings(load()), demo_settings(load(file, {"store": store}))

    assert (own.store, own.callback_profile, own.approval) == ("memory:", "event", "handset")
    assert (own.sandbox_card_entry, own.magic_outcomes) == (True, {})
    assert (given.store, given.sandbox_card_entry) == (store, False)
    # Without the handset two numbers cancel and never answer.
    without_handset = demo_settings(load(flags={"approval": "auto"}))
    assert without_handset.magic_outcomes == {"0244000003": "003", "0244000002": "002"}
