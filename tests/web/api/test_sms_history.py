"""11. SMS history: newest first, in pages, filtered."""

import pytest

from tests.conftest import Sandbox


@pytest.mark.spec("endpoint.11")
@pytest.mark.decision("D26")
async def test_pages_are_newest_first_and_a_page_behind_the_last_is_empty(sandbox: Sandbox) -> None:
    await sandbox.bulk(*(f"024400000{each}" for each in "012"))
    for digit in "34":
        await sandbox.sms(customer_number=f"024400000{digit}")

    for page, found in {1: ["4", "3"], 2: ["2", "1"], 3: ["0"], 4: [], 1000: []}.items():
        answer = await sandbox.history(page=page, limit=2)

        assert [item["customer_number"][-1] for item in answer.data] == found
        assert answer.body["pagination"] == {
            "total_no_of_records": 5,
            "total_pages": 3,
            "current_page": page,
            "items_per_page": 2,
        }


@pytest.mark.spec("endpoint.11")
@pytest.mark.decision("D26")
async def test_a_message_must_match_all_filters(sandbox: Sandbox) -> None:
    batch_id = (await sandbox.bulk(*["0244000001"] * 3)).data["batch_id"]
    await sandbox.sms()
    await sandbox.bulk("0244000009")
    await sandbox.advance(days=1)
    days = {"start_date": "2026-01-01", "end_date": "2026-01-01"}
    answer = await sandbox.history(batch_id=batch_id, status="S", limit=1, **days)
    assert len(answer.data) == 1
    pagination = answer.body["pagination"]
    assert (pagination["total_no_of_records"], pagination["total_pages"]) == (3, 3)


@pytest.mark.spec("endpoint.11")
@pytest.mark.decision("D26")
async def test_a_page_has_20_messages_by_default_and_at_most_100(sandbox: Sandbox) -> None:
    await sandbox.bulk(*["0244000001"] * 101)

    rows: list[tuple[dict[str, int], int]] = [
        ({}, 20),
        ({"limit": 100}, 100),
        ({"limit": 101}, 100),
    ]
    for asked, given in rows:
        answer = await sandbox.history(**asked)

        assert len(answer.data) == given
        pagination = answer.body["pagination"]
        assert (pagination["total_no_of_records"], pagination["items_per_page"]) == (101, given)
        assert (pagination["total_pages"], pagination["current_page"]) == (-(-101 // given), 1)


BAD_NUMBERS: list[object] = [0, -1, "1", 1.5, True, []]
BAD_DAYS: list[object] = [
    *("", "today", "2026-1-1", "01-01-2026", "2026/01/01", "20260101", "2026-02-30"),
    *("2026-13-01", "0000-01-01", "2026-W01-1", "2026-01-01T00:00:00Z", "2026-01-01 "),
    *(20260101, True, []),
]
BAD: dict[str, list[object]] = {
    "page": BAD_NUMBERS,
    "limit": BAD_NUMBERS,
    "status": ["X", "sent", "", 5, ["SENT"]],
    "batch_id": ["", " ", 5, []],
    "start_date": BAD_DAYS,
    "end_date": BAD_DAYS,
}


@pytest.mark.spec("endpoint.11")
@pytest.mark.decision("D6", "D26")
async def test_a_bad_filter_gets_code_400_and_http_200(sandbox: Sandbox) -> None:
    for field, values in BAD.items():
        for wrong in values:
            answer = await sandbox.history(**{field: wrong})

            assert (wrong, answer.status, answer.code) == (wrong, 200, "400")
            assert field in answer.message
            assert set(answer.body) == {"response_code", "response_message"}
