"""`sandbox-sim doctor`: the key that it signs with, and options that it refuses."""

import json
from pathlib import Path

import pytest
from aiohttp import web

from tests.cli.receivers import CHECKS, Listen, ask, expected, knows, report, trusting, verdicts


class TestTheKey:
    """The receiver accepts only `shop-secret`; the doctor takes its key from these places."""

    @pytest.fixture
    async def url(self, listen: Listen) -> str:
        async def shop(request: web.Request) -> web.Response:
            known = await knows(request, secret_key="shop-secret")
            return web.Response(status=200 if known else 401)

        return await listen(shop)

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "sandbox_sim.toml"
        file.write_text(
            '[[credentials]]\nclient_key = "shop"\nsecret_key = "shop-secret"\n', "utf-8"
        )
        return file

    async def test_the_sandbox_s_own_is_not_it(self, url: str) -> None:
        result = await ask("doctor", url)

        assert result.exit_code == 1
        assert "the secret key that signed this callback" in result.stdout

    async def test_it_is_found_in_each_of_them(self, url: str, file: Path) -> None:
        sets = json.dumps([{"client_key": "shop", "secret_key": "shop-secret"}])
        places: list[tuple[tuple[object, ...], dict[str, str], str]] = [
            (("--secret-key", "shop-secret"), {}, "--secret-key"),
            ((), {"SANDBOX_SIM_SECRET_KEY": "shop-secret"}, "--secret-key"),
            (("--config", file), {}, "shop"),
            ((), {"SANDBOX_SIM_CREDENTIALS": sets}, "shop"),
        ]
        for words, environment, signed_with in places:
            result, document = await report(url, *words, **environment)

            assert (result.exit_code, document["signed_with"]) == (0, signed_with)
            assert "shop-secret" not in result.output

    async def test_a_key_that_is_given_is_named_as_such(self, url: str) -> None:
        result = await ask("doctor", url, SANDBOX_SIM_SECRET_KEY="shop-secret")

        assert "signed with the key given" in result.stdout

    async def test_a_gateway_that_does_not_sign(self, listen: Listen) -> None:
        result, document = await report(await listen(trusting), SANDBOX_SIM_SIGN_CALLBACKS="false")

        assert (result.exit_code, document["signed_with"]) == (0, None)
        assert verdicts(document) == expected(**dict.fromkeys(CHECKS[-3:], "skipped"))

    async def test_a_key_that_is_given_is_used_all_the_same(self, url: str) -> None:
        result, document = await report(
            url, "--secret-key", "shop-secret", SANDBOX_SIM_SIGN_CALLBACKS="false"
        )

        assert result.exit_code == 0
        assert verdicts(document) == expected()

    async def test_settings_that_are_not_in_order(self, url: str) -> None:
        result = await ask("doctor", url, SANDBOX_SIM_CALLBACK_TIMEOUT_S="-1")

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("callback_timeout_s (from environment): ")


class TestWrongUsage:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ((), "Missing argument 'URL'"),
            (("shop.example/callback",), "shop.example/callback is not a valid address: it must"),
            (("ftp://shop.example",), "ftp://shop.example is not a valid address: it must"),
            (("http://",), "http:// is not a valid address: it must"),
            (("http://a b/",), "http://a b/ is not a valid address: it must"),
            (("http://a..b/",), "it must have a host name of letters, digits, - and _"),
            (("http://[1:2:3]:9/",), "it must have an IPv6 address without a zone"),
            (("http://me:s3same@a:0/",), "http://***@a:0/ is not a valid address"),
            (("http://a/" + "x" * 2048,), "it must have at most 2,048 characters"),
            (("http://a/", "http://b/"), "unexpected extra argument"),
            (
                ("http://a/", "--profile", "x"),
                "'x' is not one of 'trans', 'trans_bare', 'flat', 'event'",
            ),
            (("http://a/", "--timeout", "0"), "more than 0 and at most 86400 seconds"),
            (("http://a/", "--timeout", "nan"), "more than 0 and at most 86400 seconds"),
            (("http://a/", "--timeout", "soon"), "'soon' is not a valid float"),
            (("http://a/", "--secret-key", ""), "must not be empty"),
            (("http://a/", "--no-such-flag"), "No such option"),
        ],
    )
    async def test_nothing_is_sent(self, arguments: tuple[str, ...], words: str) -> None:
        result = await ask("doctor", *arguments)

        assert (result.exit_code, result.stdout) == (2, "")
        assert words in result.stderr
