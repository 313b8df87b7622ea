"""Makes `sandbox_sim/cli/compare/cases.json` from `fixtures/samples`.

Samples that differ only in their settings send the same requests, so one of them is enough.
`python -m tests.cli.compare.cases --write` writes the file.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from tests.samples import FIXTURES

CASES: Final = Path(__file__).parents[3] / "sandbox_sim" / "cli" / "compare" / "cases.json"
_SENT: Final = ("path", "headers", "request")
_SENT_LATER: Final = ("advance_ms", "path", "request")


def rendered() -> str:
    """The text of `cases.json`."""
    cases: dict[str, dict[str, Any]] = {}
    known: list[dict[str, Any]] = []
    files = (FIXTURES / "samples").glob("*.json")
    samples = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(files)}
    # Of samples that send the same, the one with the default settings gives the name.
    for name, sample in sorted(samples.items(), key=lambda item: _settings(item[1])):
        sent = {field: sample[field] for field in _SENT if field in sample}
        if then := sample.get("afterwards"):
            sent["afterwards"] = {field: then[field] for field in _SENT_LATER}
        if sent not in known:
            known.append(sent)
            cases[name] = {"title": sample["title"], **sent}
    return json.dumps(dict(sorted(cases.items())), indent=1, ensure_ascii=False) + "\n"


def _settings(sample: dict[str, Any]) -> tuple[int, bool]:
    settings = sample.get("settings", {})
    return len(settings), "rate_limit_burst" in settings


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python -m tests.cli.compare.cases --write")
    CASES.write_text(rendered(), "utf-8")
