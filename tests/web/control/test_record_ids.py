"""Any id of a record under /_sandbox finds it; for an ambiguous id the error lists the matches."""

import pytest

from tests.conftest import Sandbox
from tests.web.control_api import DEAD, ask, assert_error, get, listed, post


@pytest.fixture
async def paid(sandbox: Sandbox) -> Sandbox:
    """A gateway where services 55 and 56 both have a payment T1, and 55 has another one, T2."""
    await sandbox.collect()
    await sandbox.collect(service_id=56)
    await sandbox.collect(transaction_id="T2")
    await sandbox.advance(seconds=1)
    return sandbox


class TestTransactions:
    async def test_a_transaction_is_found_by_each_of_its_ids(self, paid: Sandbox) -> None:
        (transaction,) = await listed(paid, "transactions", "transaction_id=T2")
        (callback,) = await listed(paid, "callbacks", "transaction_id=T2")

        for name in ("T2", transaction["network_transaction_id"], callback["id"]):
            assert await get(paid, f"transactions/{name}") == transaction
            assert await get(paid, f"transactions/55/{name}") == transaction
            assert await get(paid, f"callbacks/{name}") == callback
        for path in ["T9", "56/T2"]:
            seen = await ask(paid, "GET", f"/_sandbox/transactions/{path}")
            assert_error(seen, 404, f"there is no '{path[-2:]}' among the transactions")

    async def test_an_id_of_several_services_is_ambiguous(self, sandbox: Sandbox) -> None:
        for service_id in (55, 56):
            await sandbox.collect(service_id=service_id)
        both = await listed(sandbox, "transactions")

        seen = await ask(sandbox, "GET", "/_sandbox/transactions/T1")
        settled = await post(sandbox, "transactions/T1/settle", status="000")

        named = [f"{each['network_transaction_id']}  service {each['service_id']}" for each in both]
        for refused in (seen, settled):
            assert_error(refused, 409, "'T1' fits 2 transactions", *named)
            assert refused.body["error"]["code"] == "ambiguous"
        assert await listed(sandbox, "transactions", "status=000") == []
        for service_id in (55, 56):
            found = await get(sandbox, f"transactions/{service_id}/T1")
            assert found["service_id"] == service_id

    @pytest.mark.decision("D31")
    async def test_a_repeated_id_finds_the_newest_transaction(self, sandbox: Sandbox) -> None:
        for amount in (10.5, 7):
            await sandbox.collect(transaction_id="T2", amount=amount)
        newer, older = await listed(sandbox, "transactions")
        assert await get(sandbox, "transactions/T2") == newer
        assert await get(sandbox, f"transactions/{older['network_transaction_id']}") == older

        for name, paid in (("T2", "7.0"), (older["network_transaction_id"], "10.5")):
            settled = await post(sandbox, f"transactions/{name}/settle", status="003")
            assert (settled.status, settled.body["status"]) == (200, "003")
            assert settled.body["amount"] == paid


class TestCallbacks:
    async def test_an_ambiguous_id_lists_the_callbacks(self, paid: Sandbox) -> None:
        both = await listed(paid, "callbacks", "transaction_id=T1")
        named = [f"{c['id']}  service {c['service_id']}, transaction T1, delivered" for c in both]

        seen = await ask(paid, "GET", "/_sandbox/callbacks/T1")
        tried = [await post(paid, f"callbacks/T1/{action}") for action in ("resend", "retry")]

        for refused in (seen, *tried):
            assert_error(refused, 409, "'T1' fits 2 callbacks, so use the id of one", *named)
        assert await listed(paid, "callbacks", "state=retrying") == []

    async def test_at_most_ten_callbacks_are_listed(self, sandbox: Sandbox) -> None:
        await post(sandbox, "overrides", match={}, callback={"duplicate": 10})
        for _ in range(2):
            await sandbox.collect()
        await sandbox.advance(seconds=1)

        seen = await ask(sandbox, "GET", "/_sandbox/callbacks/T1")

        assert_error(seen, 409, "fits 20 callbacks", "and 10 more")
        assert len(seen.body["error"]["message"].splitlines()) == 12

    async def test_resend_and_retry_accept_a_transaction_id(self, sandbox: Sandbox) -> None:
        await sandbox.collect(callback_url=DEAD)
        await sandbox.advance(seconds=1)

        for action in ("resend", "retry"):
            seen = await post(sandbox, f"callbacks/T1/{action}")

            assert (seen.status, seen.body["transaction_id"]) == (202, "T1")
