"""`serve --tls` as a process. Source: auth.5, D2."""

import base64
import json
import re
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim import logs
from sandbox_sim.adapters.tls import client_context
from tests.cli.processes import SOON, ended, first_line, in_process, running

CREDENTIALS = "Basic " + base64.b64encode(b"sandbox_key:sandbox_secret").decode()

pytestmark = pytest.mark.spec("auth.5")


def post(url: str, path: str, context: ssl.SSLContext) -> Any:
    """The body of the answer."""
    request = urllib.request.Request(  # noqa: S310 -- our own server
        url + path,
        json.dumps({"service_id": 55}).encode(),
        {"Authorization": CREDENTIALS, "User-Agent": "tests"},
    )
    with urllib.request.urlopen(request, timeout=SOON, context=context) as answer:  # noqa: S310
        return json.load(answer)


def test_tls_makes_an_authority_that_the_commands_and_the_inbox_trust(tmp_path: Path) -> None:
    with running(
        *("serve", "--port", 0, "--tls", "--store", "memory:", "--set", "settle_delay_ms=0")
    ) as server:
        found = re.fullmatch(
            r"sandbox-sim ready at (https://127\.0\.0\.1:\d+)\n", first_line(server)
        )
        assert found is not None
        trust = first_line(server)

        authority = tmp_path / "sandbox-sim" / "tls" / "authority.pem"
        assert trust == f"  certificate authority: {authority}\n"
        balance = post(found[1], "/sms/balance", client_context(authority))
        assert balance["response_code"] == "388"

        plain = found[1].replace("https", "http")
        refused = ended("--endpoint-url", plain, "clock", "show")
        assert (refused.returncode, refused.stderr) == (
            1,
            f"{plain} serves HTTPS only: use --endpoint-url {found[1]}\n",
        )

        paid = ended("--endpoint-url", found[1], "trigger", "collect")
        assert paid.returncode == 0, paid.stderr
        assert f"callback to {found[1]}/_sandbox/inbox/trigger: acknowledged" in paid.stdout


def test_another_user_gives_the_commands_the_authority_by_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("serve", "--port", 0, "--tls", "--store", "memory:") as server:
        url = first_line(server).split()[-1]
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


def test_the_demo_speaks_plain_http_only() -> None:
    start = in_process("demo", "--set", "tls=true")

    assert start.exit_code == 1
    assert start.stderr == "tls: the demo serves plain HTTP; leave out tls, cert and key\n"
