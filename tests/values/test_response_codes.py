"""The catalogue of response codes, compared with the table of the interface."""

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE, Reply

# Each code with its HTTP status, as the interface states it.
STATED = {
    **dict.fromkeys(("000", "370", "388", "393", "216", "237", "371", "389", "390", "S002"), 200),
    "202": 202,
    "100": 401,
    "400": 400,
    "401": 401,
    "402": 402,
    "403": 403,
    "404": 404,
    "429": 429,
    "500": 500,
}

OURS = {"219": 200}  # D14
SANDBOX_ONLY = dict.fromkeys(("015", "016", "019", "027"), 200)  # D7: unless set otherwise

MESSAGES = {
    "100": "You are not allowed to use this service",
    "202": "Request successfully received for processing",
    "370": "SMS request has been received for processing",
    **dict.fromkeys(("000", "388", "393"), "Success"),
    "401": "Unauthorized",
}


@pytest.mark.spec("codes")
@pytest.mark.decision("D7", "D14")
def test_the_catalogue_has_the_codes_of_the_interface_and_one_of_ours() -> None:
    assert {row.code: row.http_status for row in CATALOGUE.values()} == {
        **STATED,
        **OURS,
        **SANDBOX_ONLY,
    }
    assert [row.code for row in CATALOGUE.values()] == list(CATALOGUE)
    assert {code for code, row in CATALOGUE.items() if row.sandbox} == set(SANDBOX_ONLY)
    assert {"000", "202", "370", "388", "393"} == ACCEPTED


@pytest.mark.decision("D8")
def test_every_code_has_the_stated_message_or_a_plain_one() -> None:
    for code in CATALOGUE:
        message = CATALOGUE[code].message

        assert message == MESSAGES.get(code, message.strip())
        assert message[:1].isupper()
        assert not message.endswith(".")


SMS = ("sms", "bulk-sms", "sms-history", "sms-balance")


@pytest.mark.decision("D6")
@pytest.mark.parametrize("operation", [None, *Operation])
def test_sms_operations_and_no_others_answer_http_200_to_most_codes(
    operation: Operation | None,
) -> None:
    """Credentials, the rate and server errors keep their status."""
    for code in ("400", "403", "404", "216", "S002", "100", "401", "429", "500"):
        reply = Reply(code, "D6", "")
        if operation in SMS and code not in {"100", "401", "429", "500"}:
            assert reply.from_operation(operation).http_status == 200
        else:
            assert reply.from_operation(operation) == reply


def test_a_reply_collects_warnings_and_shows_them_after_its_reason() -> None:
    reply = Reply("202", "sandbox.3", "taken")
    warned = reply.with_warnings(("one",)).with_warnings(("two",))

    assert (reply.sentence, reply.with_warnings(())) == ("taken", reply)
    assert (warned.warnings, warned.sentence) == (("one", "two"), "taken; one; two")
