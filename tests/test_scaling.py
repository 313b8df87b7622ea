"""docs/scaling.md: its constants are those of the code, and its settings exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.bootstrap import build
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import Client
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
    gateway = build(Settings(store=postgres.empty_database()), clock=VirtualClock())
    from asyncpg.connection import Connection  # noqa: PLC0415

    from bench.postgres_yardstick import STATEMENT  # noqa: PLC0415

    store: Any = gateway.store
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
        await eventually(lambda: (task := store._clean_up.task) is not None and task.done())
        for method in ("execute", "executemany", "fetch"):
            noted(method)
        payment, now = transaction().payment, gateway.clock.now()
        reply = await gateway.payments.submit(payment, CLIENT, now, lambda: "http://127.0.0.1")
    finally:
        monkeypatch.undo()
        await store.close()

    assert reply.code == "202"
    assert "for one round trip" in " ".join(PAGE.split())
    assert asked == [STATEMENT]
