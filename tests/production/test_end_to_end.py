"""Production over real sockets: a server process, SQLite, networks, callbacks. D32, D39."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.bootstrap import build
from sandbox_sim.cli import main
from sandbox_sim.settings.loading import settings_from
from sandbox_sim.values.clients import is_only_live
from sandbox_sim.web.app import ROUTES
from sandbox_sim.web.control.errors import PRODUCTION, RequestRefused
from tests.cli.processes import SOON
from tests.kit.requests import collection
from tests.production.servers import HangingUpstream, Other, Server, other, serving, shop as a_shop
from tests.production.settings import BUILT_IN, LIVE

pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D32")]


@pytest.fixture(scope="module")
def shop() -> Iterator[Other]:
    with a_shop() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that only need the simulated network."""
    with serving(tmp_path_factory.mktemp("production")) as server:
        yield server


def pay(server: Server, shop: Other, **fields: Any) -> tuple[int, str]:
    mode = fields.pop("mode", "P")
    body = {**collection(callback_url=f"{shop.url}/callback"), **fields}
    status, answer = server.post("/make_payment", mode=mode, **body)
    return status, str(answer["response_code"])


def callback(shop: Other) -> dict[str, Any]:
    return shop.next()[1]


def test_a_collection_succeeds_with_its_callback(server: Server, shop: Other) -> None:
    assert pay(server, shop, transaction_id="C1") == (202, "202")

    found = callback(shop)

    assert (found["trans_ref"], found["trans_status"]) == ("C1", "000/SUCCESS")
    assert found["amount"] == "10.5"
    assert server.status("C1") == "000"


def test_a_duplicate_is_219_and_the_sandbox_does_not_know_the_payment(
    server: Server, shop: Other
) -> None:
    assert pay(server, shop, transaction_id="U1") == (202, "202")
    assert pay(server, shop, transaction_id="U1") == (200, "219")
    assert callback(shop)["trans_ref"] == "U1"

    _, sandbox = server.post("/get_transaction_status", mode="S", transaction_id="U1")
    assert sandbox["response_code"] == "027"
    status, live = server.post("/get_transaction_status", transaction_id="U9")
    assert (status, live["response_code"]) == (404, "404")
    assert live["response_message"] == "Transaction not found"


def test_sms_is_queued_then_sent_or_refunded(server: Server) -> None:
    text = {"msg_body": "Hello", "sender_id": "Shop"}
    first = {"customer_number": "233244000001", **text}
    status, answer = server.post("/sms/send", **first)
    assert (status, answer["response_code"]) == (200, "237")
    topup = {"service_id": 55, "units": 10, "mode": "P", "by": "ama", "reason": "stock"}
    assert server.ask("POST", "/_sandbox/ledger/topup", topup)[1]["sms_balance"] == 10

    _, sent = server.post("/sms/send", **first)
    _, bulk = server.post("/sms/bulk", recipients=["0244000002", "0244000009"], **text)

    assert sent["response_data"]["status"] == bulk["response_data"]["status"] == "QUEUED"
    assert bulk["response_data"]["sms_balance"] == 7
    for outcome, count in (("SENT", 2), ("REFUNDED", 1)):
        wait = {"match": {"mode": "P", "status": outcome}, "count": count, "timeout_s": SOON}
        assert server.ask("POST", "/_sandbox/sms/wait", wait)[0] == 200
    _, history = server.post("/sms/history")
    assert history["pagination"]["total_no_of_records"] == 3
    _, balance = server.post("/sms/balance")
    assert balance["response_data"]["sms_balance"] == 8


def test_a_notification_for_an_unknown_network_is_404(server: Server) -> None:
    status, answer = server.ask("POST", "/_networks/unknown/A1", {})
    assert (status, answer["error"]["code"]) == (404, "not_found")
    assert server.ask("PUT", "/_networks/staging/A1", {}) == (200, {})


class TestControl:
    """The control API while production is on."""

    @pytest.mark.parametrize("change", ["advance", "freeze", "resume", "reset"])
    def test_the_clock_cannot_be_changed(self, server: Server, change: str) -> None:
        body = {"seconds": 5} if change == "advance" else {}
        status, answer = server.ask("POST", f"/_sandbox/clock/{change}", body)
        assert (status, answer["error"]["code"]) == (409, "production")

    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    def test_settings_cannot_be_changed(self, server: Server, method: str) -> None:
        status, answer = server.ask(method, "/_sandbox/config", {"approval": "handset"})
        assert (status, answer["error"]["code"]) == (409, "production")

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("reset", {"service_id": 900}),
            ("seed", {"service_id": 900}),
            ("overrides", {"match": {"service_id": 900}, "outcome": {"status": "000"}}),
            ("faults", {"match": {"service_id": 900}, "fault": {"status": 500}}),
            ("snapshots", {"name": "before", "service_id": 900}),
            ("requests", {"service_id": "900"}),
        ],
        ids=["reset", "seed", "override", "fault", "snapshot", "deletion of requests"],
    )
    async def test_a_sandbox_command_cannot_name_a_service_that_only_mode_p_uses(
        self, path: str, body: dict[str, Any]
    ) -> None:
        credentials = [{**LIVE, "service_ids": [55, 900]}, {**BUILT_IN, "service_ids": [55, 56]}]
        chosen = {"store": "memory:", "allow_memory": True, "credentials": credentials}
        settings = settings_from({"production": True, **chosen}, "test")
        clients = settings.clients().values()
        assert is_only_live(clients, 900)
        assert not is_only_live(clients, 55)
        assert not is_only_live(clients, 56)

        routes = build(settings, clock=VirtualClock()).app[ROUTES]()
        name = "DELETE" if path == "requests" else "POST", f"/_sandbox/{path}"
        (route,) = (each for each in routes if (each.method, each.path) == name)
        source = route.body or route.query
        asked = source.model.model_validate_json(json.dumps(body)) if source else None
        handler: Any = route.handler
        with pytest.raises(RequestRefused) as refused:
            await handler(None, asked)
        assert refused.value.error == PRODUCTION

    def test_a_reset_keeps_the_records_of_mode_p(self, server: Server, shop: Other) -> None:
        pay(server, shop, transaction_id="X1")
        assert callback(shop)["trans_ref"] == "X1"
        balance = server.balance("collection")

        reset = server.ask("POST", "/_sandbox/reset", {})
        assert reset == (200, {"service_id": None, "kept": ["mode P", "snapshots"]})

        assert server.status("X1") == "000"
        assert server.balance("collection") == balance
        assert server.ask("DELETE", "/_sandbox/requests")[0] == 200
        _, page = server.ask("GET", "/_sandbox/requests?transaction_id=X1&operation=collect")
        assert [each["mode"] for each in page["requests"]] == ["P"]

    def test_overrides_and_faults_do_not_apply_to_mode_p(self, server: Server, shop: Other) -> None:
        match = {"service_id": 55}
        override = {"match": match, "outcome": {"status": "003"}}
        fault = {"match": match, "fault": {"status": 503}}
        assert server.ask("POST", "/_sandbox/overrides", override)[0] == 201
        assert server.ask("POST", "/_sandbox/faults", fault)[0] == 201

        assert pay(server, shop, transaction_id="O1") == (202, "202")
        assert callback(shop)["trans_status"] == "000/SUCCESS"

        assert pay(server, shop, mode="S", transaction_id="O1")[0] == 503
        server.ask("DELETE", "/_sandbox/faults")
        server.ask("DELETE", "/_sandbox/overrides")

    def test_the_mode_chooses_between_payments_of_one_id(self, server: Server, shop: Other) -> None:
        for mode in ("P", "S"):
            pay(server, shop, mode=mode, transaction_id="BOTH")
            callback(shop)

        path = "/_sandbox/transactions/55/BOTH"
        shown = [server.ask("GET", path + query)[1]["mode"] for query in ("", "?mode=P", "?mode=S")]

        assert shown == ["S", "P", "S"]
        assert server.ask("GET", "/_sandbox/transactions/55/unknown?mode=P")[0] == 404


def test_a_payment_is_charged_once_if_a_crash_comes_before_its_result_is_recorded(
    tmp_path: Path, shop: Other
) -> None:
    upstream = HangingUpstream()
    with other(upstream.answer) as far:
        networks = f"""
[networks.account]
adapter = "upstream"
base_url = "{far.url}"
client_key = "far_key"
secret_key = "far_secret"
timeout_s = 1
poll_after_s = 0.05

[[routes]]
network = "account"
"""
        with serving(tmp_path, networks) as server:
            Thread(target=pay_without_answer, args=(server, shop), daemon=True).start()
            path, sent = far.next()
            server.process.kill()  # the other side has the payment, and its answer has not come
            server.process.wait()
        assert path == "/make_payment"

        with serving(tmp_path, networks) as server:
            found = callback(shop)
            assert (found["trans_ref"], found["trans_status"]) == ("K1", "000/SUCCESS")
            assert server.status("K1") == "000"
            assert pay(server, shop, transaction_id="K1") == (200, "219")
        upstream.go_on.set()

    assert upstream.taken == [sent["transaction_id"]]


def pay_without_answer(server: Server, shop: Other) -> None:
    """Pay at a server that is killed before it answers."""
    with contextlib.suppress(OSError, json.JSONDecodeError):
        pay(server, shop, transaction_id="K1")


class TestLedger:
    def test_the_audit_of_the_ledger_passes_and_shows_a_posting(
        self, server: Server, shop: Other
    ) -> None:
        pay(server, shop, transaction_id="B1", service_id=72)
        callback(shop)

        shown = CliRunner().invoke(main, ["--endpoint-url", server.url, "ledger", "audit"])
        status, page = server.ask("GET", "/_sandbox/ledger?mode=P&service_id=72")

        assert shown.exit_code == 0
        assert "every balance is the sum of its transfers" in shown.output
        assert status == 200
        (posting,) = page["postings"]
        assert (posting["mode"], posting["amount"], posting["reason"]) == ("P", "10.5", "collected")
        assert posting["debit"] == "network/staging/clearing/GHS"
        assert posting["credit"] == "service/72/collection/GHS"
        assert page["balances"] == [
            {
                "mode": "P",
                "service_id": 72,
                "account": "collection",
                "asset": "GHS",
                "balance": "10.5",
                "pending": "0",
                "available": "10.5",
            }
        ]
        _, whole = server.ask("GET", "/_sandbox/ledger")
        assert "network/staging/clearing/GHS" in {each["account"] for each in whole["accounts"]}
