"""The list of what waits for a person in mode P: `is:waiting` in the search of payments. D39."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.web.pages.rows import Badge, Row, Shown, payment_row
from sandbox_sim.web.pages.search import Facts, Search, facts_of
from sandbox_sim.web.pages.texts import Texts

if TYPE_CHECKING:
    from sandbox_sim.gateway.networks.live_records import LiveRecords

WAITING: Final = "waiting"


async def waiting_rows(live: "LiveRecords", search: Search, text: Texts) -> Sequence[Row]:
    """The rows of all payments and SMS that wait for a person and match, newest first."""
    found = (
        _row(each, text)
        for each in await live.waiting()
        if search.service_id in {None, each["service_id"]}
    )
    return [row for row, facts in found if search.accepts(facts)]


def _row(record: Shown, text: Texts) -> tuple[Row, Facts]:
    row, _ = payment_row(text, record, None, None)
    name, badge = record["transaction_id"], Badge("002", text("row.waits_for_person"))
    row = row._replace(badges=(*row.badges, badge), note=" · ".join((name, *record["waiting"])))
    if record["operation"] == Operation.SMS:
        row = row._replace(key=f"m:{name}")
    states = record["status"], WAITING
    texts = (*row, record["reference"], record["party"], record["amount"])
    return row, facts_of(record["operation"], states, None, texts, record["mode"])
