"""`serve --tls` as a process. Source: auth.5, D2."""

from pathlib import Path

import pytest

from sandbox_sim import logs
from sandbox_sim.adapters.tls import client_context
from tests.cli.processes import ended, first_line, in_process, post, ready_url, running

pytestmark = pytest.mark.spec("auth.5")


def test_tls_makes_an_authority_that_the_commands_and_the_inbox_trust(tmp_path: Path) -> None:
    with running(
        *("serve", "--port", 0, "--tls", "--store", "memory:", "--set", "settle_delay_ms=0")
    ) as server:
        url = ready_url(server, "https")
        trust = first_line(server)

        authority = tmp_path / "sandbox-sim" / "tls" / "authority.pem"
        assert trust == f"  certificate authority: {authority}\n"
        balance, _ = post(url, "/sms/balance", client_context(authority))
        assert balance["response_code"] == "388"

        plain = url.replace("https", "http")
        refused = ended("--endpoint-url", plain, "clock", "show")
        assert (refused.returncode, refused.stderr) == (
            1,
            f"{plain} serves HTTPS only: use --endpoint-url {url}\n",
        )

        paid = ended("--endpoint-url", url, "trigger", "collect")
        assert paid.returncode == 0, paid.stderr
        assert f"callback to {url}/_sandbox/inbox/trigger: acknowledged" in paid.stdout


def test_a_variable_names_the_authority_for_the_commands_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("serve", "--port", 0, "--tls", "--store", "memory:") as server:
        url = ready_url(server, "https")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))

        refused = ended("--endpoint-url", url, "clock", "show")
        assert refused.returncode == 1
        assert refused.stderr == (
            f"{url} cannot be reached (its certificate is not trusted: unable to get local issuer "
            "certificate): name the file of its authority in the environment variable "
            "SSL_CERT_FILE, and use a name of the certificate\n"
        )

        authority = tmp_path / "sandbox-sim" / "tls" / "authority.pem"
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert ended("--endpoint-url", url, "clock", "show").returncode == 0


def test_an_authority_that_cannot_be_used_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "configure", lambda *_: None)
    folder = tmp_path / "sandbox-sim" / "tls"
    folder.mkdir(parents=True)
    (folder / "authority-key.pem").write_text("no key")

    start = in_process("serve", "--port", 0, "--tls")

    assert (start.exit_code, start.stdout) == (1, "")
    assert start.stderr.startswith(f"tls: the authority in {folder} cannot be used")
    assert start.stderr.count("\n") == 1


def test_the_demo_refuses_tls() -> None:
    start = in_process("demo", "--set", "tls=true")

    assert start.exit_code == 1
    assert start.stderr == "tls: the demo serves plain HTTP; leave out tls, cert and key\n"
