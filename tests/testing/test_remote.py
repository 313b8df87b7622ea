"""`RemoteGateway`: a test that has its own service at a shared gateway."""

import asyncio
import inspect
from collections.abc import Callable, Iterator

import pytest

from sandbox_sim import SandboxGateway
from sandbox_sim.testing.remote import RemoteGateway
from tests.testing.conftest import (
    UNREACHABLE,
    assert_wrong_timeouts_are_refused,
    collected,
    status,
    texted,
)

AUTH = ("sandbox_key", "sandbox_secret")


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxGateway]:
    """A gateway that others use too: its clock runs."""
    with SandboxGateway(settle_delay_ms=0, sms_transition_ms=0, control_token="secret") as gateway:
        gateway.reset_clock()
        yield gateway


@pytest.fixture
def remote(server: SandboxGateway) -> RemoteGateway:
    return RemoteGateway(server.url, AUTH, "secret")


def test_a_remote_gateway_has_the_records_of_a_gateway_in_the_process() -> None:
    with SandboxGateway() as server:
        remote = RemoteGateway(server.url, server.auth, None)
        server.service_id = remote.service_id
        collected(remote, amount=10.25)
        collected(remote, transaction_id="T2", callback_url=UNREACHABLE)
        collected(remote, transaction_id="T3", customer_number="0244000009")
        texted(remote)
        server.advance(minutes=1)

        for name in ("callbacks", "transactions", "sms", "requests"):
            assert [*getattr(remote, name)] == [*getattr(server, name)], name
        assert [*remote.inbox()] == [*server.inbox()]
        assert remote.now == server.now
        assert server.report().startswith(remote.report())


def test_two_remote_gateways_at_one_server_are_separate(
    server: SandboxGateway, remote: RemoteGateway
) -> None:
    other = RemoteGateway(server.url, AUTH, "secret")
    collected(other)
    other.wait_callback(transaction_id="T1")
    other.fault(status=503)
    other.override(response_code="402", transaction_id="T2")

    assert collected(remote)["response_code"] == "202"
    remote.wait_callback(transaction_id="T1")
    remote.reset()

    assert not [*remote.callbacks, *remote.transactions, *remote.inbox()]
    other.clear_faults()
    other.transactions.expect_one(transaction_id="T1")
    assert collected(other, transaction_id="T2")["response_code"] == "402"


def test_records_of_more_than_one_page_are_read(remote: RemoteGateway) -> None:
    for number in range(101):
        collected(remote, transaction_id=f"T{number}")

    assert [each.transaction_id for each in remote.transactions] == [f"T{n}" for n in range(101)]


def test_begin_takes_a_new_service_without_records(remote: RemoteGateway) -> None:
    collected(remote)
    before = remote.service_id

    remote.begin()

    assert remote.service_id != before
    assert status(remote)["response_code"] == "027"
    remote.requests.expect_none(operation="collect")


async def test_retry_callbacks_makes_an_attempt_at_once_also_in_a_coroutine(
    remote: RemoteGateway,
) -> None:
    await asyncio.to_thread(collected, remote, callback_url=UNREACHABLE)

    assert (await remote.aio.wait_callback(transaction_id="T1")).status == "000"
    assert len(await remote.aio.retry_callbacks("T1")) == 1
    retried = await asyncio.to_thread(remote.retry_callbacks)
    assert [each.transaction_id for each in retried] == ["T1"]
    with pytest.raises(ValueError, match="there is no callback 'T9'"):
        await asyncio.to_thread(remote.retry_callbacks, "T9")
    with pytest.raises(RuntimeError, match="gateway time is shared by all"):
        await remote.aio.advance(seconds=1)


async def test_a_wrong_timeout_is_refused_at_once(remote: RemoteGateway) -> None:
    await assert_wrong_timeouts_are_refused(remote)


async def test_the_error_of_a_wait_names_the_rejected_request(remote: RemoteGateway) -> None:
    await asyncio.to_thread(collected, remote, customer_number="0244000009")
    with pytest.raises(AssertionError, match=r"waited 0 s: expected a callback") as raised:
        await remote.aio.wait_callback(transaction_id="T1", timeout_s=0)
    assert "was answered 015: " in str(raised.value)


def test_a_call_that_would_affect_other_users_is_refused(remote: RemoteGateway) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: remote.advance(minutes=5),
        remote.reset_clock,
        remote.renew,
        lambda: remote.certify("success", place_order=str, state_of=str),
        lambda: remote.make(callback_profile="flat"),
    )
    for call in calls:
        with pytest.raises(RuntimeError, match=r"all its users|has other users") as raised:
            call()

        says = "Unset SANDBOX_SIM_URL, and the fixture starts its own gateway"
        assert says in str(raised.value)


def test_a_wrong_address_or_token_is_named(server: SandboxGateway) -> None:
    for url, token, problem in (
        ("http://127.0.0.1:9", "secret", "no gateway answers at http://127.0.0.1:9 "),
        ("127.0.0.1:8233", "secret", "must be an address such as http://127.0.0.1:8233"),
        (f"{server.url}/x", "secret", f"the server at {server.url}/x is not sandbox_sim; start"),
        (server.url, "wrong", "set SANDBOX_SIM_TOKEN to its control token"),
    ):
        with pytest.raises(ValueError, match="SANDBOX_SIM_URL") as raised:
            RemoteGateway(url, AUTH, token)

        assert problem in str(raised.value)


def test_a_remote_gateway_has_every_method_of_a_gateway_in_the_process() -> None:
    def public(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

    assert public(SandboxGateway) <= public(RemoteGateway)
