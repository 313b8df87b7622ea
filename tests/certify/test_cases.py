"""The form of a case, and the errors for files that do not have it."""

from pathlib import Path

import pytest

from sandbox_sim.certify.cases import CertifyCase, load
from sandbox_sim.certify.files import FileError, parse
from tests.certify.applications import CASE


def test_the_included_cases_begin_with_the_controls_and_are_named_after_their_files() -> None:
    cases = load()

    assert [case.name for case in cases if case.control] == ["control_paid", "control_unpaid"]
    assert [case.control for case in cases][:3] == [True, True, False]
    assert "callback_lost" in {case.name for case in cases}


def test_a_case_of_the_user_is_added_or_replaces_the_one_of_the_same_name(
    tmp_path: Path,
) -> None:
    text = """
title = "Ours to try"
good = "Does it right."
why = "It costs money."
mend = "Mend it."
steps = [{ order = {} }, { advance = "1h" }, { becomes = ["paid", "failed"] }]
"""
    for name in ("mine.toml", "success.toml"):
        (tmp_path / name).write_text(text)

    found = {case.name: case for case in load([tmp_path])}

    assert found["mine"].title == found["success"].title == "Ours to try"
    assert found["mine"].steps[1].verb == "advance"
    assert len(found) == len(load()) + 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"why": ""}, "why: must have at least 1 character"),
        ({"mend": None}, "mend: is required"),
        ({"titel": "x"}, "titel: there is no such field; did you mean title?"),
        ({"steps": []}, "steps: must have at least one step"),
        ({"steps": [{}]}, "steps.0: must have exactly one verb, and has nothing"),
        (
            {"steps": [{"advance": "1h", "charges": 1}]},
            "steps.0: must have exactly one verb, and has advance and charges",
        ),
        ({"steps": [{"advance": "soon"}]}, 'steps.0.advance: must be a duration such as "500ms"'),
        ({"steps": [{"becoms": "paid"}]}, "becoms: there is no such field; did you mean becomes?"),
        ({"steps": [{"order": {}}, {"becomes": "shipped"}]}, "steps.1.becomes.0: must be 'paid'"),
        ({"steps": [{"becomes": "paid"}]}, "steps.0: no order 'order' was placed before"),
        ({"steps": [{"replay": "x"}]}, "steps.0: no order 'x' was placed before"),
        (
            {"steps": [{"order": {}}, {"order": {"name": "b"}}]},
            "steps: each order needs a phone of its own",
        ),
        ({"steps": [{"order": {"phone": "12"}}]}, "steps.0.order.phone: must match pattern"),
        (
            {"steps": [{"order": {}}, {"advance": "1h", "of": "order"}]},
            "steps.1: of goes with agrees, becomes",
        ),
        ({"steps": [{"restart": "database"}]}, "steps.0.restart: must be 'gateway' or"),
    ],
)
def test_a_wrong_case_is_named_with_its_field(changes: dict[str, object], problem: str) -> None:
    whole = {**CASE, "steps": [{"order": {}}, {"becomes": "paid"}], **changes}
    document = {name: value for name, value in whole.items() if value is not None}

    with pytest.raises(FileError) as error:
        parse(document, CertifyCase, "my.toml")

    text = str(error.value)
    assert f"my.toml: {problem}" in text or f"my.toml: steps.0.{problem}" in text


def test_every_wrong_file_is_named_in_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("title = ")
    (tmp_path / "b.toml").write_bytes(b"\xff")

    with pytest.raises(FileError) as error:
        load([tmp_path, tmp_path / "none"])

    lines = str(error.value).splitlines()
    assert f"{tmp_path}/a.toml: is not TOML: Invalid value" in lines[0]
    assert f"{tmp_path}/b.toml: is not TOML" in lines[1]
    assert lines[2] == f"{tmp_path}/none: has no case, a file that ends in .toml"
