"""Each command in docs/tour.md prints the output below it."""

import re

from tests import tour
from tests.cli.processes import console_script

# Text that differs in each run: times, durations, ids and signatures.
_VARYING = re.compile(
    r"\b2[0-9]{3}-[0-9-]{5}[T ][0-9:.]+Z?|^[0-9:]{8} (?=[A-Z])|\b(?:[0-9]+ to )?[0-9]+ ms\b"
    r"|(?<=\"duration_ms\": )[0-9]+|\b[0-9.]+(?= s from)|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]+\b|(?<=DOCTOR-)[0-9a-f]{12}|\b[0-9]{11}\b"
)


def shape(output: str) -> list[str]:
    return [" ".join(_VARYING.sub("*", line).split()) for line in output.splitlines()]


def test_every_command_prints_the_output_below_it() -> None:
    steps = tour.steps(tour.PAGE.read_text("utf-8"))
    assert len(steps) >= 15

    with tour.session(console_script().parent) as terminal:
        for command, output in steps:
            assert (command, shape(terminal.run(command))) == (command, shape(output))
