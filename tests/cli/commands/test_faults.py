"""`sandbox-sim faults add | list | clear`."""

from collections.abc import Mapping
from typing import Any

from tests.cli.asking import as_json, columns, printed
from tests.conftest import Sandbox


async def test_every_fault_is_added_and_listed_in_words(sandbox: Sandbox) -> None:
    lost = {
        "connection_reset": "the answer is lost: the connection is reset",
        "empty_response": "the answer is empty: the connection is closed",
        "malformed_json": "the answer is cut off within its JSON",
        "timeout": "the answer never comes",
    }
    rows: list[tuple[str, Mapping[str, Any], str]] = [
        ("--status 503", {"status": 503}, "the answer is HTTP 503"),
        ("--latency 200", {"latency": {"fixed_ms": 200}}, "the answer comes 200 ms late"),
        (
            "--latency 50-300",
            {"latency": {"uniform_ms": [50, 300]}},
            "the answer comes 50 ms to 300 ms late",
        ),
        (
            "--latency-lognormal 90,0.4",
            {"latency": {"lognormal_ms": {"median": 90, "sigma": 0.4}}},
            "the answer comes late: lognormal, median 90 ms, sigma 0.4",
        ),
        *((f"--{name.replace('_', '-')}", {name: True}, lost[name]) for name in lost),
    ]
    for words, fault, shown in rows:
        added = await as_json(sandbox, "faults", "add", *words.split())
        _, line, *_ = await printed(sandbox, "faults", "list")

        assert (added["fault"], added["match"], added["times"]) == (fault, {}, None)
        assert columns(line) == [added["id"], "every request", shown, "0"]

    (line,) = await printed(sandbox, "faults", "add", "--timeout", "--not-processed")
    assert line.endswith(" for every request: the answer never comes; the request is not processed")
    assert (await as_json(sandbox, "faults", "list"))["faults"][0]["processed"] is False


async def test_a_fault_with_every_option_is_described_in_words(sandbox: Sandbox) -> None:
    (line,) = await printed(
        *(sandbox, "faults", "add", "--status", 429, "--retry-after", 2, "--every", 3),
        *("--probability", 0.5, "--once", "--service-id", 55, "--operation", "collect"),
        *("--min-amount", 10),
    )
    (rule,) = (await as_json(sandbox, "faults", "list"))["faults"]

    requests = "service 55, operation collect, amount of at least 10.00"
    does = (
        "the answer is HTTP 429 with Retry-After 2; one of 3 requests is affected; "
        "the probability is 0.5"
    )
    assert line == f"fault {rule['id']} for {requests}: {does}, once"
    assert (rule["retry_after_s"], rule["times"]) == (2, 1)
