"""POST /_sandbox/doctor: what `sandbox-sim doctor` does, for the button of the dashboard."""

from collections import Counter
from typing import Any

import pytest
from aiohttp import web

from sandbox_sim.callbacks import doctor
from sandbox_sim.callbacks.bodies import check_signature
from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.client import live
from tests.web.conftest import Receiver
from tests.web.control_api import DEAD, assert_error, listed, post

SHOP: dict[str, Any] = {"client_key": "shop", "secret_key": "shop_secret", "service_ids": [55]}
BANK: dict[str, Any] = {"client_key": "bank", "secret_key": "bank_secret", "service_ids": [56]}


def check_signatures(receiver: Receiver, secret: str) -> None:
    """Make the receiver refuse a callback that is not signed with this key."""

    async def check(request: web.Request) -> web.Response:
        given = request.headers.get("X-Service-Signature")
        found = check_signature(await request.read(), given, [secret])
        return web.Response(status=200 if found == "valid" else 401)

    receiver.answer = check


def verdicts(report: Any) -> Counter[str]:
    return Counter(each["verdict"] for each in report["checks"])


async def test_a_failed_check_has_a_remedy_and_leaves_no_records(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    report = (await post(sandbox, "doctor", url=receiver.url, profiles=["flat"])).body

    wrong = {each["check"]: each for each in report["checks"] if each["verdict"] == "wrong"}
    assert set(wrong) == {"no_signature", "wrong_signature", "changed_body"}
    assert wrong["no_signature"]["says"] == "a forged callback was accepted: HTTP 200"
    assert wrong["no_signature"]["remedy"].startswith("Answer 401 to a callback without")
    assert not report["healthy"]
    for plural in ("callbacks", "transactions"):
        assert await listed(sandbox, plural) == []


@pytest.mark.spec("service.6")
async def test_a_receiver_can_query_a_sample_payment(sandbox: Sandbox, receiver: Receiver) -> None:
    """A receiver may ask for the status of a payment before it believes a callback."""
    answers: list[str] = []

    async def verify(request: web.Request) -> web.Response:
        body = await request.json()
        found = await sandbox.status(body["transaction_id"], service_id=55)
        answers.append(found.body["response_data"]["status"])
        return web.Response()

    receiver.answer = verify
    await post(sandbox, "doctor", url=receiver.url, service_id=55, profiles=["flat"])

    assert answers == ["000", "000", "001", "003", "001", "001", "001"]


async def test_a_healthy_receiver_passes_all_checks_with_the_key_of_its_service(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(credentials=[SHOP, BANK])
    rows: list[tuple[dict[str, int], str]] = [
        ({"service_id": 56}, "bank"), ({"service_id": 55}, "shop"), ({}, "shop")
    ]  # fmt: skip
    for named, owner in rows:
        check_signatures(receiver, f"{owner}_secret")
        receiver.deliveries.clear()

        answer = await post(sandbox, "doctor", url=receiver.url, **named)

        report = answer.body
        assert (answer.status, report["healthy"], report["complete"]) == (200, True, True)
        assert report["signed_with"] == owner
        assert report["judged"] == ["trans"]
        assert verdicts(report) == {"ok": 36, "skipped": 1}
        assert len(receiver.deliveries) == 5 * 7

    answer = await post(sandbox, "doctor", url=DEAD, service_id=57)
    assert_error(answer, 409, "no credentials of mode S are for service_id 57")


async def test_samples_follow_callback_hosts_callback_rewrites_and_callback_headers(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    refusing = await start_sandbox(callback_hosts={"deny": ["127.0.0.0/8"]})
    report = (await post(refusing, "doctor", url=receiver.url)).body
    (reached,) = [each for each in report["checks"] if each["check"] == "reachable"]
    assert reached["verdict"] == "wrong"
    assert "the setting callback_hosts does not let callbacks go to" in reached["says"]
    assert reached["remedy"].startswith("Add this host to the setting callback_hosts")
    assert receiver.deliveries == []

    sandbox = await start_sandbox(
        callback_rewrites={"https://shop.test": receiver.url.rpartition("/")[0]},
        callback_headers={"X-Tunnel": "open"},
    )
    await post(sandbox, "doctor", url="https://shop.test/pay", profiles=["flat"])
    assert {each.headers["X-Tunnel"] for each in receiver.deliveries} == {"open"}


async def test_the_receiver_of_a_callback_is_called_with_the_password_of_its_address(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(credentials=[BANK | {"service_ids": [56, 55]}, SHOP])
    sandbox.headers["Authorization"] = basic("shop", "shop_secret")
    address = receiver.url.replace("http://", "http://shop:p4ssw0rd@")
    await sandbox.collect(transaction_id="T1", callback_url=address)
    await sandbox.advance(seconds=1)
    receiver.deliveries.clear()

    report = (await post(sandbox, "doctor", callback="T1", profiles=["flat"])).body

    assert "p4ssw0rd" not in report["url"]
    assert {each.headers["Authorization"] for each in receiver.deliveries} == {
        basic("shop", "p4ssw0rd")
    }
    assert_error(await post(sandbox, "doctor", callback="T2"), 404, "T2")


async def test_a_bad_field_is_refused_by_name(sandbox: Sandbox) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({}, "url"),
        ({"url": "shop"}, "url"),
        ({"url": DEAD, "callback": "1"}, "exactly one of url and callback must be set"),
        ({"url": DEAD, "profiles": ["best"]}, "profiles"),
        ({"url": DEAD, "profiles": []}, "profiles"),
        ({"url": DEAD, "service_id": 0}, "service_id"),
    ]
    for body, named in rows:
        assert_error(await post(sandbox, "doctor", **body), 400, named)


async def test_an_examination_ends_at_its_time_limit(
    sandbox: Sandbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "TIME_LIMIT_S", 0)
    go_on = receiver.hang()
    report = (await post(sandbox, "doctor", url=receiver.url)).body
    go_on.set()
    assert (report["complete"], report["checks"]) == (False, [])


@pytest.mark.decision("D39")
async def test_production_sends_no_samples(start_sandbox: StartSandbox, receiver: Receiver) -> None:
    networks = {"staging": {"adapter": "simulated"}}
    credentials = [{**SHOP, "mode": "P"}, BANK]
    sandbox = await live(start_sandbox, networks, credentials=credentials)

    answer = await post(sandbox, "doctor", url=receiver.url)

    assert_error(answer, 409, "Production is on, so no sample callbacks are sent")
    assert receiver.deliveries == []
