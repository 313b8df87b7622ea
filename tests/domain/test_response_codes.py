"""The catalogue of response codes, compared with the table of the interface."""

from dataclasses import FrozenInstanceError

import pytest

from sandbox_sim.domain.response_codes import ACCEPTED, CATALOGUE, Reply
from sandbox_sim.domain.vocabulary import Operation

STATED = {
    "000": 200,
    "202": 202,
    "370": 200,
    "388": 200,
    "393": 200,
    "100": 401,
    "400": 400,
    "401": 401,
    "402": 402,
    "403": 403,
    "404": 404,
    "429": 429,
    "500": 500,
    "216": 200,
    "237": 200,
    "371": 200,
    "389": 200,
    "390": 200,
}
SANDBOX_ONLY = ("015", "016", "019", "027")


@pytest.mark.spec("codes")
@pytest.mark.parametrize(("code", "http_status"), STATED.items())
def test_each_code_has_the_http_status_that_is_stated(code: str, http_status: int) -> None:
    assert CATALOGUE[code].http_status == http_status


@pytest.mark.spec("codes")
@pytest.mark.decision("D7")
@pytest.mark.parametrize("code", SANDBOX_ONLY)
def test_sandbox_codes_come_with_http_200_unless_set_otherwise(code: str) -> None:
    assert (CATALOGUE[code].http_status, CATALOGUE[code].sandbox) == (200, True)


@pytest.mark.decision("D7")
def test_the_setting_reaches_no_other_code() -> None:
    assert {code for code, row in CATALOGUE.items() if row.sandbox} == set(SANDBOX_ONLY)


@pytest.mark.spec("codes")
def test_an_sms_number_that_is_not_allowed_comes_with_http_200() -> None:
    assert CATALOGUE["S002"].http_status == 200


@pytest.mark.decision("D14")
def test_a_duplicate_comes_with_http_200() -> None:
    assert CATALOGUE["219"].http_status == 200


@pytest.mark.spec("codes")
@pytest.mark.decision("D14")
def test_there_is_no_code_that_neither_the_interface_nor_a_decision_names() -> None:
    assert set(CATALOGUE) == {*STATED, *SANDBOX_ONLY, "S002", "219"}


@pytest.mark.decision("D7")
def test_http_202_always_and_only_means_code_202() -> None:
    assert [code for code, row in CATALOGUE.items() if row.http_status == 202] == ["202"]


@pytest.mark.decision("D8")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("100", "You are not allowed to use this service"),
        ("202", "Request successfully received for processing"),
        ("370", "SMS request has been received for processing"),
        ("000", "Success"),
        ("388", "Success"),
        ("393", "Success"),
    ],
)
def test_stated_messages(code: str, message: str) -> None:
    assert CATALOGUE[code].message == message


@pytest.mark.decision("D8")
@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_has_a_message_in_words(code: str) -> None:
    message = CATALOGUE[code].message

    assert message == message.strip()
    assert message[:1].isupper()
    assert not message.endswith(".")


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_catalogue_is_keyed_by_code(code: str) -> None:
    assert CATALOGUE[code].code == code


def test_the_catalogue_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        CATALOGUE["000"].http_status = 500  # type: ignore[misc]
    with pytest.raises(TypeError):
        CATALOGUE["000"] = CATALOGUE["500"]  # type: ignore[index]


@pytest.mark.spec("codes")
@pytest.mark.parametrize("code", CATALOGUE)
def test_success_is_five_codes_and_anything_else_a_rejection(code: str) -> None:
    assert (code in ACCEPTED) is (code in {"000", "202", "370", "388", "393"})


SMS = ("sms", "bulk-sms", "sms-history", "sms-balance")


@pytest.mark.decision("D6")
class TestSmsOperations:
    """One rule for every layer that answers a request to an SMS operation."""

    @pytest.mark.parametrize("operation", SMS)
    @pytest.mark.parametrize("code", ["400", "403", "404", "216", "S002"])
    def test_they_answer_http_200_whatever_the_code(self, operation: str, code: str) -> None:
        assert Reply(code, "D6", "").from_operation(Operation(operation)).http_status == 200

    @pytest.mark.parametrize("operation", SMS)
    @pytest.mark.parametrize("code", ["100", "401", "429", "500"])
    def test_credentials_rate_and_server_errors_keep_their_status(
        self, operation: str, code: str
    ) -> None:
        reply = Reply(code, "D6", "")

        assert reply.from_operation(Operation(operation)) == reply

    @pytest.mark.parametrize("operation", [None, *sorted(set(Operation) - set(SMS))])
    def test_no_other_operation_does(self, operation: Operation | None) -> None:
        reply = Reply("400", "D5", "")

        assert reply.from_operation(operation) == reply
