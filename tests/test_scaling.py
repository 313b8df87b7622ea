"""docs/scaling.md: its constants are those of the code, and its settings exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.events.waits import Waiters
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.overrides.overrides import Overrides, UserRules
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.payments.submit import Payments, SandboxProcessor
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import Client, ServiceMode
from tests import postgres
from tests.sample_records import transaction
from tests.stores.conftest import eventually

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "scaling.md").read_text("utf-8")
COMPOSE = (DOCS / "compose.postgres.yaml").read_text("utf-8")
CLIENT = Client("sandbox_key", "sandbox_secret")


@pytest.mark.parametrize("text", [PAGE, COMPOSE], ids=["page", "compose"])
def test_the_settings_on_a_page_exist(text: str) -> None:
    named = {name.lower() for name in re.findall(r"SANDBOX_SIM_([A-Z_]+)", text)}

    assert named
    assert named <= set(Settings.model_fields)


async def test_a_payment_runs_the_statement_of_the_yardstick_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = postgres.empty_database()
    from asyncpg.connection import Connection  # noqa: PLC0415

    from bench.postgres_yardstick import STATEMENT  # noqa: PLC0415
    from sandbox_sim.stores.postgres.postgres_store import PostgresStore  # noqa: PLC0415

    clock = VirtualClock()
    store = PostgresStore(url, clock)
    ids, accounts = RandomIds(), Accounts()
    behaviour = BehaviourHolder(Behaviour(allowed_prefixes=("0244",)))
    settlement = Settlement(ids, accounts, {CLIENT.client_key: CLIENT}, behaviour)
    overrides = Overrides(store, UserRules(store, clock, ids), Waiters(clock))
    gate = ProcessAnswerGate()
    processor = SandboxProcessor(ids, accounts, gate, overrides, settlement, behaviour)
    payments = Payments(store, ids, gate, {ServiceMode.SANDBOX: processor})
    asked: list[str] = []

    def noted(method: str) -> None:
        original = getattr(Connection, method)

        async def call(self: object, query: str, *values: Any, **options: Any) -> Any:
            if self is not store._channel._connection:
                asked.append(query)
            return await original(self, query, *values, **options)

        monkeypatch.setattr(Connection, method, call)

    await store.open()
    try:
        await eventually(lambda: store._cleanup is not None and store._cleanup.done())
        for method in ("execute", "executemany", "fetch"):
            noted(method)
        payment, now = transaction().payment, clock.now()
        reply = await payments.submit(payment, CLIENT, now, lambda: "http://127.0.0.1")
    finally:
        monkeypatch.undo()
        await store.close()

    assert reply.code == "202"
    assert "for one round trip" in " ".join(PAGE.split())
    assert asked == [STATEMENT]
