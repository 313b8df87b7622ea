"""3. Wallet deposit: mobile money into the client's own payout wallet."""

import pytest

from tests.conftest import Sandbox


@pytest.mark.spec("service.2", "service.8", "endpoint.3", "sandbox.3")
@pytest.mark.decision("D8", "D16")
async def test_a_deposit_is_accepted_and_reported_by_callback(sandbox: Sandbox) -> None:
    answer = await sandbox.deposit()

    assert (answer.status, answer.code) == (202, "202")
    assert answer.message == "Request successfully received for processing"
    assert (await sandbox.status()).data["status"] == "002"

    await sandbox.advance(seconds=1)

    assert (await sandbox.status()).data["status"] == "000"
    callback = await sandbox.callback()
    assert (callback["trans_ref"], callback["trans_status"]) == ("T1", "000/SUCCESS")
    assert (callback["payment_mode"], callback["nw"]) == ("MOM", "MTN")


@pytest.mark.spec("sandbox.1", "sandbox.2", "sandbox.3")
@pytest.mark.parametrize(
    ("customer_number", "code"),
    [
        ("0200000008", "202"),
        ("0244000009", "015"),
        ("0240000000", "019"),
    ],
)
async def test_the_number_decides(sandbox: Sandbox, customer_number: str, code: str) -> None:
    answer = await sandbox.deposit(customer_number=customer_number)
    await sandbox.advance(seconds=1)

    assert answer.code == code
    assert len(await sandbox.inbox()) == (1 if code == "202" else 0)


@pytest.mark.spec("sandbox.3")
@pytest.mark.decision("D12", "D28")
async def test_a_deposit_has_no_cap(sandbox: Sandbox) -> None:
    answer = await sandbox.deposit(amount=250000)
    await sandbox.advance(seconds=1)

    assert answer.code == "202"
    assert (await sandbox.callback())["amount"] == "250000"


@pytest.mark.decision("D17")
async def test_sandbox_does_without_a_nickname(sandbox: Sandbox) -> None:
    assert (await sandbox.deposit(nickname=None)).code == "202"


@pytest.mark.spec("endpoint.3")
@pytest.mark.decision("D5")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("customer_number", None),
        ("payment_option", None),
        ("payment_option", "CRD"),
        ("payment_option", "BNK"),
        ("nw", None),
        ("nw", "VIS"),
        ("nw", "ECO"),
    ],
)
async def test_only_mobile_money_is_deposited(
    sandbox: Sandbox, field: str, wrong: str | None
) -> None:
    answer = await sandbox.deposit(**{field: wrong})

    assert (answer.status, answer.code) == (400, "400")
    assert field in answer.message
