"""`sandbox-sim doctor` against good and bad receivers: what it finds, its key and its options."""

import asyncio
import json
import re
import ssl
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from tests.cli.processes import SOON, command, process
from tests.cli.receivers import (
    CHECKS,
    Listen,
    ask,
    expected,
    healthy,
    is_signed,
    report,
    trusting,
    verdicts,
)


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D27", "D29", "D30")
async def test_a_healthy_receiver_passes_every_check(listen: Listen) -> None:
    result = await ask("doctor", await listen(healthy))

    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:11]] == ["ok", "skipped"] + ["ok"] * 7
    assert lines[-1] == "nothing is wrong"
    assert re.fullmatch(
        r"ok       successful       acknowledged with HTTP 200, which does not show that the "
        r"order is paid \(every profile, .* ms\)",
        lines[4],
    )


async def test_an_authority_of_the_environment_is_trusted(
    listen: Listen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in a new process, because a process loads the certificate authorities once."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    url = await listen(healthy, context)

    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with process(*command("--json", "doctor", url)) as doctor:
        out, err = await asyncio.to_thread(doctor.communicate, timeout=SOON)

    assert (doctor.returncode, err) == (0, "")
    assert verdicts(json.loads(out)) == expected(tls="ok")


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
async def test_a_receiver_that_accepts_everything_fails_the_checks_of_signatures(
    listen: Listen,
) -> None:
    result = await ask("doctor", await listen(trusting))

    assert result.exit_code == 1
    assert result.stderr == "wrong: no signature, wrong signature, changed body\n"
    _, line, sent, got, do, note = result.stdout.splitlines()[12:18]
    assert line.startswith("wrong    wrong signature  a forged callback was accepted: HTTP 200")
    words = "sent: a successful payment, signed with another key, DOCTOR-[0-9a-f]{12}, as trans"
    assert re.fullmatch(words, sent.strip())
    assert got.strip() == "got:  thanks"
    assert note.startswith("note     wrong signature  a forged callback was accepted")
    assert do.strip().startswith("do:   Compare X-Service-Signature with ")


async def test_the_answer_of_a_receiver_is_escaped_and_shortened(listen: Listen) -> None:
    text = "\x1b[2J\n\u202egone" + "x" * 1000

    async def sly(_request: web.Request) -> web.Response:
        return web.Response(status=500, text=text)

    url = await listen(sly)
    result = await ask("doctor", url, "--profile", "trans")
    assert f"got:  \\x1b[2J \\u202egone{'x' * 190}…\n" in result.stdout

    text = ""
    assert "got:" not in (await ask("doctor", url, "--profile", "trans")).stdout


async def test_the_json_report_has_every_check(listen: Listen) -> None:
    url = await listen(healthy)

    result, document = await report(url, "--profile", "flat", "--timeout", "5")

    assert (result.exit_code, result.stderr) == (0, "")
    counts = {"ok": 8, "warning": 0, "wrong": 0, "note": 0, "skipped": 1}
    checks = document.pop("checks")
    assert document == {
        "url": url,
        "profiles": ["flat"],
        "judged": ["flat"],
        "signed_with": "sandbox_key",
        "timeout_s": 5.0,
        "healthy": True,
        "counts": counts,
        "status_queries": document["status_queries"],
        "works_with": None,
        "set": None,
    }
    assert [row["check"] for row in checks] == list(CHECKS)


async def test_a_password_in_the_address_is_not_printed(listen: Listen) -> None:
    url = (await listen(healthy)).replace("http://", "http://ama:s3same@")

    for form in (["--json"], []):
        result = await ask(*form, "doctor", url)
        assert result.exit_code == 0
        assert "s3same" not in result.output


class TestSecretKey:
    """The receiver accepts only `shop-secret`; the doctor takes its key from these places."""

    @pytest.fixture
    async def url(self, listen: Listen) -> str:
        async def shop(request: web.Request) -> web.Response:
            is_genuine = await is_signed(request, secret_key="shop-secret")
            return web.Response(status=200 if is_genuine else 401)

        return await listen(shop)

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "sandbox_sim.toml"
        file.write_text(
            '[[credentials]]\nclient_key = "shop"\nsecret_key = "shop-secret"\n', "utf-8"
        )
        return file

    async def test_the_default_key_of_the_sandbox_does_not_match(self, url: str) -> None:
        result = await ask("doctor", url)

        assert result.exit_code == 1
        assert "the secret key that signed this callback" in result.stdout

    async def test_the_key_is_found_in_each_of_these_places(self, url: str, file: Path) -> None:
        sets = json.dumps([{"client_key": "shop", "secret_key": "shop-secret"}])
        given = {"SANDBOX_SIM_SECRET_KEY": "shop-secret"}
        places: list[tuple[tuple[object, ...], dict[str, str], str]] = [
            (("--secret-key", "shop-secret"), {}, "--secret-key"),
            ((), given, "--secret-key"),
            (("--config", file), {}, "shop"),
            ((), {"SANDBOX_SIM_CREDENTIALS": sets}, "shop"),
        ]
        for words, environment, signed_with in places:
            result, document = await report(url, *words, **environment)

            assert (result.exit_code, document["signed_with"]) == (0, signed_with)
            assert "shop-secret" not in result.output
        assert "signed with the key given" in (await ask("doctor", url, **given)).stdout

    async def test_checks_of_signatures_are_skipped_without_signing_unless_a_key_is_given(
        self, listen: Listen, url: str
    ) -> None:
        unsigned = {"SANDBOX_SIM_SIGN_CALLBACKS": "false"}
        result, document = await report(await listen(trusting), **unsigned)
        given, signed = await report(url, "--secret-key", "shop-secret", **unsigned)

        assert (result.exit_code, document["signed_with"], given.exit_code) == (0, None, 0)
        assert verdicts(document) == expected(**dict.fromkeys(CHECKS[-3:], "skipped"))
        assert verdicts(signed) == expected()

    async def test_an_invalid_setting_is_named(self, url: str) -> None:
        result = await ask("doctor", url, SANDBOX_SIM_CALLBACK_TIMEOUT_S="-1")

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("callback_timeout_s (from environment): ")
