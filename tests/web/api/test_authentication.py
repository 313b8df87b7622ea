"""Access to the gateway: credentials, User-Agent, rate limit, services of a credential set."""

import pytest

from tests.conftest import Sandbox, StartSandbox, basic
from tests.kit.requests import OPERATIONS, PATHS
from tests.production.settings import LIVE
from tests.web.wire import Answer, exchange, request_bytes

OTHER_SET = {"client_key": "other", "secret_key": "other_secret"}
INVALID_AUTHORIZATIONS = {
    "no header": None,
    "empty": "",
    "no credentials": "Basic",
    "blank credentials": "Basic  ",
    "another scheme": "Bearer c2FuZGJveF9rZXk6c2FuZGJveF9zZWNyZXQ=",
    "no scheme": "c2FuZGJveF9rZXk6c2FuZGJveF9zZWNyZXQ=",
    "not base64": "Basic sandbox_key:sandbox_secret",
    "base64 of no pair": "Basic c2FuZGJveF9rZXk=",
    "wrong key": basic("someone", "sandbox_secret"),
    "wrong secret": basic("sandbox_key", "guess"),
    "half of the secret": basic("sandbox_key", "sandbox"),
    "no secret": basic("sandbox_key", ""),
    "swapped": basic("sandbox_secret", "sandbox_key"),
    "blanks around": basic(" sandbox_key", "sandbox_secret "),
    "upper case": basic("SANDBOX_KEY", "SANDBOX_SECRET"),
    "not ascii": basic("sandbox_kéy", "sandbox_secret"),
}


async def ask(
    sandbox: Sandbox,
    authorization: str | None,
    *headers: bytes,
    body: bytes = b"{}",
    method: str = "POST",
    path: str = "/make_payment",
) -> Answer:
    """Send a request with this Authorization, and with a User-Agent only if `headers` has one."""
    lines = [] if authorization is None else [b"Authorization: " + authorization.encode()]
    request = request_bytes(
        path, body, *lines, *headers, method=method, credentials=False, agent=False
    )
    return await exchange(sandbox, request)


@pytest.mark.spec("auth.1", "auth.4", "codes")
@pytest.mark.decision("D2", "D3", "D9", "D36")
async def test_missing_or_wrong_credentials_get_401_on_every_path(sandbox: Sandbox) -> None:
    """auth.1 wants credentials in the first request.

    Java's `Authenticator` and .NET's `Credentials` send them only after a challenge.
    """
    refusal = {
        "response_code": "100",
        "response_message": "You are not allowed to use this service",
    }
    for name, authorization in INVALID_AUTHORIZATIONS.items():
        answer = await ask(sandbox, authorization, b"User-Agent: tests")

        assert (answer.status, answer.body) == (401, refusal), name
    for path in (*PATHS, "/", "/unknown", "/make_payment/", "/sms"):
        answer = await ask(sandbox, None, path=path)

        assert (answer.status, answer.body) == (401, refusal), path
        assert answer.headers["x-sandbox-why"] == (
            "the Authorization header is missing: send it with every request, because the gateway "
            "does not ask for it (/_sandbox/rules#D3)"
        )


@pytest.mark.decision("D3", "D9")
async def test_authentication_precedes_all_other_checks(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(max_body_bytes=1000)
    wrong = basic("sandbox_key", "guess")
    answers = [
        await ask(sandbox, wrong, b"User-Agent: "),
        await ask(sandbox, wrong, b"Content-Encoding: gzip"),
        await ask(sandbox, wrong, method="GET"),
        await ask(sandbox, wrong, method="DELETE", path="/sms/send"),
        await ask(sandbox, wrong, body=b"not json"),
        await ask(sandbox, wrong, body=b"x" * 2000),
    ]

    assert [(each.status, each.code) for each in answers] == [(401, "100")] * 6


@pytest.mark.spec("auth.2")
@pytest.mark.decision("D4")
async def test_a_missing_or_blank_user_agent_gets_403(sandbox: Sandbox) -> None:
    for header in [[], [b"User-Agent:"], [b"User-Agent:  \t "]]:
        for path in (*PATHS, "/unknown"):
            answer = await ask(sandbox, basic(), *header, path=path)

            assert (answer.status, answer.code) == (403, "403"), path
            assert "User-Agent" in answer.body["response_message"]


@pytest.mark.spec("auth.1")
@pytest.mark.decision("D2")
@pytest.mark.parametrize(
    ("client_key", "secret_key"),
    [("shop", "s3cret"), ("shop", "with:colons:in"), ("boutique", "clé-secrète"), ("k", " ")],
)
async def test_configured_credentials_replace_the_built_in_ones(
    start_sandbox: StartSandbox, client_key: str, secret_key: str
) -> None:
    sandbox = await start_sandbox(
        credentials=[OTHER_SET, {"client_key": client_key, "secret_key": secret_key}]
    )

    async def code(*pair: str) -> str:
        return (await sandbox.post("/make_payment", {}, Authorization=basic(*pair))).code

    assert await code(client_key, secret_key) == "400"
    assert await code("other", "other_secret") == "400"
    assert await code(client_key, "other_secret") == "100"
    assert await code("sandbox_key", "sandbox_secret") == "100"


@pytest.mark.spec("codes")
@pytest.mark.decision("D2", "D6")
async def test_credentials_are_valid_only_for_their_services(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(credentials=[{**OTHER_SET, "service_ids": [55, 56]}])

    for operation in OPERATIONS.values():
        refused = (200 if operation.path.startswith("/sms/") else 403, "403")
        for service_id in (55, 56, 57):
            body = {**operation.body, "service_id": service_id, "transaction_id": operation.path}
            answer = await sandbox.post(
                operation.path, body, Authorization=basic("other", "other_secret")
            )
            if service_id == 57:
                assert (answer.status, answer.code) == refused
            else:
                assert answer.code == operation.code


@pytest.mark.spec("auth.3")
@pytest.mark.decision("D6", "D32")
async def test_production_credentials_get_403_from_a_sandbox(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(credentials=[OTHER_SET, LIVE])
    authorization = basic("live_key", "live_secret")

    for name, operation in OPERATIONS.items():
        answer = await sandbox.post(operation.path, operation.body, Authorization=authorization)

        expected = 200 if operation.path.startswith("/sms/") else 403
        assert (answer.status, answer.code) == (expected, "403"), name


@pytest.mark.spec("codes")
@pytest.mark.decision("D10")
async def test_the_rate_limit_gives_429_and_retry_after(start_sandbox: StartSandbox) -> None:
    keys = [f"key{number}" for number in range(3)]
    sets = [{"client_key": key, "secret_key": "secret"} for key in keys]
    sandbox = await start_sandbox(credentials=sets, rate_limit_per_minute=1, rate_limit_burst=2)

    paths = ("/make_payment", "/sms/send", "/get_account_balance")
    for key, path in zip(keys, paths, strict=True):
        authorization = basic(key, "secret")
        answers = [await sandbox.post(path, {}, Authorization=authorization) for _ in range(3)]

        assert [answer.code for answer in answers] == ["400", "400", "429"]
        assert answers[2].status == 429
        assert 0 < int(answers[2].headers["Retry-After"]) <= 60
        assert "Retry-After" not in answers[0].headers
