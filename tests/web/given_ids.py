"""The ids that a gateway gives: at least one of each kind."""

from tests.conftest import Sandbox
from tests.web.control_api import ask
from tests.web.hosted_page import redirect
from tests.web.overriding import override


async def given_ids(sandbox: Sandbox, name: str) -> list[str]:
    """Make a record of each kind and return their ids; the payments are named after `name`."""
    rule = await override(sandbox, callback={"duplicate": 2})
    page = await redirect(sandbox, transaction_id=f"card of {name}")
    payment = await sandbox.collect(transaction_id=name)
    single = await sandbox.sms()
    bulk = await sandbox.bulk("0244000001", "0244000002")
    await sandbox.advance(seconds=3)
    assert (payment.code, single.code, bulk.code) == ("202", "370", "370")
    payments = [await sandbox.status(each) for each in (f"card of {name}", name)]
    callbacks = await ask(sandbox, "GET", "/_sandbox/callbacks?limit=4")
    messages = (await sandbox.history(limit=3)).data
    return [
        *(each.headers["X-Sandbox-Request-Id"] for each in (payment, single, bulk)),
        *(each.data["network_transaction_id"] for each in payments),
        *(each["id"] for each in callbacks.body["callbacks"]),
        *(each["processing_id"] for each in messages),
        bulk.data["batch_id"],
        page.rpartition("/")[2],
        rule["id"],
    ]
