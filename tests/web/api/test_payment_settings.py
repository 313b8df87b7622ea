"""The settings that change the answers to payments."""

import pytest

from tests.conftest import StartSandbox


@pytest.mark.decision("D16")
async def test_settle_delay_ms_is_the_time_to_success(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(settle_delay_ms=2500)
    await sandbox.collect()

    await sandbox.advance(milliseconds=2499)
    assert (await sandbox.status()).data["status"] == "002"
    assert await sandbox.inbox() == []

    await sandbox.advance(milliseconds=1)
    assert (await sandbox.status()).data["status"] == "000"
    assert (await sandbox.callback())["trans_status"] == "000/SUCCESS"


@pytest.mark.decision("D16")
async def test_settle_delay_ms_may_be_nothing(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(settle_delay_ms=0)

    answer = await sandbox.collect()
    await sandbox.advance(seconds=0)

    assert answer.code == "202"
    assert (await sandbox.status()).data["status"] == "000"
    assert (await sandbox.callback())["trans_status"] == "000/SUCCESS"


@pytest.mark.spec("sandbox.1")
@pytest.mark.decision("D11")
@pytest.mark.parametrize(
    ("customer_number", "code"),
    [
        ("0555000001", "202"),
        ("0550000001", "019"),
        ("0244000001", "019"),
        ("0555000009", "015"),
    ],
)
async def test_allowed_prefixes_replace_the_three(
    start_sandbox: StartSandbox, customer_number: str, code: str
) -> None:
    sandbox = await start_sandbox(allowed_prefixes=["0555", "020"])

    assert (await sandbox.collect(customer_number=customer_number)).code == code


@pytest.mark.spec("sandbox.1")
@pytest.mark.decision("D11")
@pytest.mark.parametrize(
    ("customer_number", "code"),
    [
        pytest.param("0244000001", "202", id="listed"),
        pytest.param("0244000009", "015", id="listed and declined"),
        pytest.param("0244000002", "019", id="prefix alone"),
        pytest.param("0555000001", "019", id="listed under no prefix"),
    ],
)
async def test_allowed_numbers_narrow_the_prefixes(
    start_sandbox: StartSandbox, customer_number: str, code: str
) -> None:
    sandbox = await start_sandbox(allowed_numbers=["0244000001", "0244000009", "0555000001"])

    assert (await sandbox.collect(customer_number=customer_number)).code == code


@pytest.mark.spec("sandbox.4")
@pytest.mark.decision("D11")
@pytest.mark.parametrize("operation", ["collect", "deposit", "payout", "airtime"])
async def test_match_network_holds_the_prefix_against_the_network(
    start_sandbox: StartSandbox, operation: str
) -> None:
    sandbox = await start_sandbox(match_network=True)

    for nw, customer_number, code in (
        ("VOD", "0200000001", "202"),
        ("VOD", "0244000001", "019"),
        ("MTN", "0200000009", "019"),
    ):
        answer = await getattr(sandbox, operation)(nw=nw, customer_number=customer_number)

        assert answer.code == code, (nw, customer_number)


@pytest.mark.decision("D11")
@pytest.mark.parametrize("operation", ["collect", "deposit", "payout", "airtime"])
async def test_accept_international_takes_both_forms(
    start_sandbox: StartSandbox, operation: str
) -> None:
    sandbox = await start_sandbox(accept_international=True)

    for customer_number, code in (
        ("233244000001", "202"),
        ("0244000001", "202"),
        ("233244000009", "015"),
        ("233540010000", "019"),
        ("+233244000001", "019"),
    ):
        answer = await getattr(sandbox, operation)(customer_number=customer_number)

        assert answer.code == code, customer_number


@pytest.mark.decision("D11", "D28")
async def test_a_number_accepted_in_international_form_keeps_it_in_the_callback(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(accept_international=True)

    await sandbox.collect(customer_number="233244000001")
    await sandbox.advance(seconds=1)

    assert (await sandbox.callback())["customer_number"] == "233244000001"


@pytest.mark.decision("D11")
async def test_accept_international_and_match_network_go_together(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(accept_international=True, match_network=True)

    assert (await sandbox.collect(nw="MTN", customer_number="233244000001")).code == "202"
    assert (await sandbox.collect(nw="VOD", customer_number="233244000001")).code == "019"


@pytest.mark.decision("D7")
@pytest.mark.parametrize(
    ("fields", "code", "status"),
    [
        ({"customer_number": "0244000009"}, "015", 422),
        ({"amount": 10001}, "016", 422),
        ({"customer_number": "0540010000"}, "019", 422),
        ({"trans_type": "MTC", "payment_option": "BNK", "nw": "ECO"}, "019", 422),
        ({"trans_type": "MTC", "amount": 10001}, "402", 402),
        ({}, "202", 202),
    ],
)
async def test_sandbox_reject_status_is_that_of_the_sandbox_codes_only(
    start_sandbox: StartSandbox, fields: dict[str, object], code: str, status: int
) -> None:
    sandbox = await start_sandbox(sandbox_reject_status=422)

    answer = await sandbox.collect(**fields)

    assert (answer.code, answer.status) == (code, status)


@pytest.mark.decision("D7")
async def test_sandbox_reject_status_is_that_of_027_too(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(sandbox_reject_status=404)

    answer = await sandbox.status("never seen")

    assert (answer.code, answer.status) == ("027", 404)


@pytest.mark.decision("D7", "D14")
async def test_sandbox_reject_status_leaves_219_alone(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(sandbox_reject_status=422, duplicates="reject")
    await sandbox.collect()

    answer = await sandbox.collect()

    assert (answer.code, answer.status) == ("219", 200)


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
@pytest.mark.parametrize(
    ("nw", "customer_number", "code"),
    [
        ("VIS", "4000000000000002", "000"),
        ("MAS", "2223003122003222", "000"),
        ("MAS", "4000000000000002", "019"),
        ("VIS", "4111111111111111", "019"),
    ],
)
async def test_test_cards_replace_the_four(
    start_sandbox: StartSandbox, nw: str, customer_number: str, code: str
) -> None:
    cards = {"4000000000000002": "VIS", "2223003122003222": "MAS"}
    sandbox = await start_sandbox(test_cards=cards)

    assert (await sandbox.card(nw=nw, customer_number=customer_number)).code == code
