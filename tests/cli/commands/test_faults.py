"""`sandbox-sim faults add | list | clear`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.cli.asking import as_json, columns, on, printed
from tests.conftest import Sandbox

LOSSES = {
    "connection_reset": "the answer is lost: the connection is reset",
    "empty_response": "the answer is empty: the connection is closed",
    "malformed_json": "the answer is cut off within its JSON",
    "timeout": "the answer never comes",
}


async def test_each_fault(sandbox: Sandbox) -> None:
    rows: list[tuple[Sequence[object], Mapping[str, Any], str]] = [
        (["--status", 503], {"status": 503}, "the answer is HTTP 503"),
        (["--latency", 200], {"latency": {"fixed_ms": 200}}, "the answer comes 200 ms late"),
        (
            ["--latency", "50-300"],
            {"latency": {"uniform_ms": [50, 300]}},
            "the answer comes 50 ms to 300 ms late",
        ),
        (
            ["--latency-lognormal", "90,0.4"],
            {"latency": {"lognormal_ms": {"median": 90, "sigma": 0.4}}},
            "the answer comes late: lognormal, median 90 ms, sigma 0.4",
        ),
        *(([f"--{name.replace('_', '-')}"], {name: True}, LOSSES[name]) for name in LOSSES),
    ]
    for words, fault, shown in rows:
        added = await as_json(sandbox, "faults", "add", *words)
        _, line, *_ = await printed(sandbox, "faults", "list")

        assert (added["fault"], added["match"], added["times"]) == (fault, {}, None)
        assert columns(line) == [added["id"], "every request", shown, "0"]


async def test_one_with_everything(sandbox: Sandbox) -> None:
    (line,) = await printed(
        *(sandbox, "faults", "add", "--status", 429, "--retry-after", 2, "--every", 3),
        *("--probability", 0.5, "--once", "--service-id", 55, "--operation", "collect"),
        *("--min-amount", 10),
    )
    (rule,) = (await as_json(sandbox, "faults", "list"))["faults"]

    who = "service 55, operation collect, amount of at least 10.00"
    does = (
        "the answer is HTTP 429 with Retry-After 2; one of 3 requests is affected; "
        "the probability is 0.5"
    )
    assert line == f"fault {rule['id']} for {who}: {does}, once"
    assert (rule["retry_after_s"], rule["times"]) == (2, 1)


async def test_a_request_that_never_arrives(sandbox: Sandbox) -> None:
    (line,) = await printed(sandbox, "faults", "add", "--timeout", "--not-processed")

    assert line.endswith(" for every request: the answer never comes; the request is not processed")
    assert (await as_json(sandbox, "faults", "list"))["faults"][0]["processed"] is False


async def test_those_of_a_service_are_listed_and_taken_out(sandbox: Sandbox) -> None:
    for service_id in (55, 55, 56):
        await printed(sandbox, "faults", "add", "--timeout", "--service-id", service_id)

    assert len(await printed(sandbox, "faults", "list", "--service-id", 55)) == 3
    assert await printed(sandbox, "faults", "clear", "--service-id", 55) == ["2 deleted"]
    (rule,) = (await as_json(sandbox, "faults", "list"))["faults"]
    assert await printed(sandbox, "faults", "clear", rule["id"]) == ["1 deleted"]
    assert await printed(sandbox, "faults", "clear") == ["0 deleted"]
    assert await printed(sandbox, "faults", "list") == ["no faults"]


async def test_one_that_is_not_there(sandbox: Sandbox) -> None:
    result = await on(sandbox, "faults", "clear", "F0")

    assert (result.exit_code, result.stderr) == (
        1,
        "there is no 'F0' among the faults, or it was deleted\n",
    )


async def test_wrong_usage(sandbox: Sandbox) -> None:
    rows: list[tuple[list[object], str]] = [
        (["add"], "--connection-reset"),
        (["add", "--status", 503, "--timeout"], "one of --status"),
        (["add", "--latency", 5, "--latency-lognormal", "90,0.4"], "one of --status"),
        (["add", "--latency", "slow"], "200 or 50-300"),
        (["add", "--latency", "1-2-3"], "200 or 50-300"),
        (["add", "--latency-lognormal", "90"], "90,0.4"),
        (["add", "--timeout", "--once", "--times", 2], "--once"),
        (["clear", "F1", "--service-id", 55], "--service-id"),
    ]
    for words, named in rows:
        result = await on(sandbox, "faults", *words)

        assert result.exit_code == 2
        assert named in result.stderr
