"""The schemas of what is answered: each model is one component."""

from typing import Any, TypedDict

import pytest

from sandbox_sim.web.openapi.document import Schemas


def model(name: str, **fields: Any) -> Any:
    return TypedDict(name, fields)  # type: ignore[operator]


def test_a_model_that_is_named_twice_is_one_component_and_two_of_one_name_are_refused() -> None:
    view = model("View", id=str)
    schemas = Schemas()

    assert schemas.of(view) == schemas.of(view) == {"$ref": "#/components/schemas/View"}
    assert list(schemas.components) == ["View"]
    with pytest.raises(ValueError, match="two models have the name View"):
        schemas.of(model("View", at=str))
