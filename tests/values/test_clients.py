"""Credential sets: the services that they may use, their header, and a secret that no log shows."""

import pytest

from sandbox_sim.values.clients import Client, ServiceMode, basic_credentials


@pytest.mark.spec("auth.3")
def test_a_set_is_a_sandbox_set_unless_it_says_otherwise() -> None:
    assert Client("key", "secret").mode is ServiceMode.SANDBOX


@pytest.mark.decision("D2")
@pytest.mark.parametrize("service_id", [1, 55, 2**40])
def test_a_set_that_lists_no_service_may_use_any(service_id: int) -> None:
    assert Client("key", "secret").may_use(service_id)


@pytest.mark.decision("D2")
@pytest.mark.parametrize(("service_id", "allowed"), [(55, True), (56, True), (5, False)])
def test_a_set_that_lists_services_may_use_those(service_id: int, allowed: bool) -> None:
    client = Client("key", "secret", service_ids=frozenset({55, 56}))

    assert client.may_use(service_id) is allowed


def test_the_secret_is_not_in_the_words_that_a_log_would_show() -> None:
    assert "hush" not in repr(Client("key", "hush"))


@pytest.mark.parametrize(
    ("user", "sent"),
    [("test", "dGVzdDoxMjPCow=="), ("caf\udce9", "Y2Fm6ToxMjPCow==")],
    ids=["in UTF-8", "bytes as they were typed"],
)
def test_the_credentials_of_basic_authentication(user: str, sent: str) -> None:
    assert basic_credentials(user, "123\u00a3") == sent  # the example of RFC 7617
