"""A view of a record is made from its fields, each as JSON has it."""

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import NamedTuple, TypedDict

from sandbox_sim.values.json_text import viewer


class Colour(Enum):
    RED = "red"


class Paint(NamedTuple):
    name: str
    colour: Colour
    litres: Decimal
    mixed_at: datetime
    dried_at: datetime | None
    tags: tuple[str, ...]
    secret: str


class PaintView(TypedDict):
    colour: str
    name: str
    litres: str
    mixed_at: str
    dried_at: str | None
    tags: list[str]
    age: int


def test_a_view_has_its_fields_in_order_and_given_values_replace_record_fields() -> None:
    mixed = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    paint = Paint("wall", Colour.RED, Decimal("2.50"), mixed, None, ("new",), "formula")

    shown = viewer(PaintView)(paint, age=3, name="Wall")

    assert [*shown.items()] == [
        ("colour", "red"),
        ("name", "Wall"),
        ("litres", "2.50"),
        ("mixed_at", "2026-01-31T09:30:00.000Z"),
        ("dried_at", None),
        ("tags", ["new"]),
        ("age", 3),
    ]
