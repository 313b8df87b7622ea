"""Credential sets: the services that they may use, their header, and a secret that no log shows."""

import pytest

from sandbox_sim.values.clients import Client, ServiceMode, basic_credentials


@pytest.mark.spec("auth.3")
@pytest.mark.decision("D2")
def test_a_client_is_of_the_sandbox_and_may_use_any_service_by_default() -> None:
    plain, limited = Client("key", "hush"), Client("key", "hush", service_ids=frozenset({55, 56}))

    assert plain.mode is ServiceMode.SANDBOX
    assert all(map(plain.may_use, (1, 55, 2**40)))
    assert [limited.may_use(each) for each in (55, 56, 5)] == [True, True, False]
    assert "hush" not in repr(plain), "a log would show it"


@pytest.mark.parametrize(
    ("user", "sent"),
    [("test", "dGVzdDoxMjPCow=="), ("caf\udce9", "Y2Fm6ToxMjPCow==")],
    ids=["UTF-8", "undecodable bytes"],
)
def test_basic_credentials_are_encoded_as_in_rfc_7617(user: str, sent: str) -> None:
    assert basic_credentials(user, "123\u00a3") == sent  # the example of RFC 7617
