"""`sandbox-sim overrides add | list | clear`."""

from typing import Any

from tests.cli.asking import as_json, columns, on, printed
from tests.conftest import Sandbox, StartSandbox


async def add(sandbox: Sandbox, *words: object) -> dict[str, Any]:
    answer: dict[str, Any] = await as_json(sandbox, "overrides", "add", *words)
    return answer


async def test_the_options_give_the_outcome_the_match_and_the_number_of_uses(
    sandbox: Sandbox,
) -> None:
    cancel = {"outcome": {"status": "003"}}
    rows: list[tuple[str, dict[str, Any]]] = [
        ("--status 003", cancel),
        ("--status pending", {"outcome": {"status": "002"}}),
        ("--response-code 402", {"outcome": {"response_code": "402"}}),
        ("--delay-ms 500", {"delay_ms": 500}),
        ("--callback drop", {"callback": {"drop": True}}),
        (
            "--callback duplicate=2 --callback profile=flat --callback delay_ms=5",
            {"callback": {"duplicate": 2, "profile": "flat", "delay_ms": 5}},
        ),
        ("--callback before_response=true", {"callback": {"before_response": True}}),
        ("--status 003 --times 3", {**cancel, "times": 3}),
        ("--status 003 --once", {**cancel, "times": 1}),
    ]
    matches: list[tuple[str, dict[str, Any]]] = [
        ("--service-id 55 --operation payout", {"service_id": 55, "operation": "payout"}),
        ("--transaction-id 1001", {"transaction_id": "1001"}),
        ("--customer-number 0244000001", {"customer_number": "0244000001"}),
        ("--nw MTN", {"nw": "MTN"}),
        ("--amount 5", {"amount": {"min": 5.0, "max": 5.0}}),
        ("--min-amount 5.5", {"amount": {"min": 5.5}}),
        ("--min-amount 5 --max-amount 10", {"amount": {"min": 5.0, "max": 10.0}}),
    ]
    rows += [(f"--status 003 {words}", {**cancel, "match": match}) for words, match in matches]
    nothing = {"outcome": {}, "delay_ms": 0, "callback": {}, "match": {}, "times": None}
    for words, posted in rows:
        override = await add(sandbox, *words.split())

        assert {name: override[name] for name in nothing} == {**nothing, **posted}, words


async def test_the_list_describes_overrides_in_words(sandbox: Sandbox) -> None:
    assert await printed(sandbox, "overrides", "list") == ["no overrides"]
    await add(sandbox, "--status", "000")
    words = ("--operation", "collect", "--service-id", 55, "--min-amount", 5, "--max-amount", 10.5)
    callback = ("--callback", "duplicate=2", "--callback", "bad_signature")
    await add(sandbox, *words, "--status", "003", "--delay-ms", 50, *callback, "--times", 2)
    await sandbox.collect()

    heading, *rules = await printed(sandbox, "overrides", "list")

    assert columns(heading) == ["id", "for", "does", "used"]
    assert [columns(rule)[1:] for rule in rules] == [
        [
            "service 55, operation collect, amount from 5.00 to 10.50",
            "; ".join(
                (
                    *("the transaction ends as 003 cancelled", "it settles 50 ms later"),
                    *("the signature of the callback is wrong", "the callback is sent twice"),
                )
            ),
            "1 of 2",
        ],
        ["every request", "the transaction ends as 000 successful", "0"],
    ]


async def test_clear_deletes_one_override_those_of_a_service_or_all(sandbox: Sandbox) -> None:
    first = await add(sandbox, "--status", "003")
    for service_id in 55, 55, 56:
        await add(sandbox, "--status", "003", "--service-id", service_id)

    assert await printed(sandbox, "overrides", "clear", first["id"]) == ["1 deleted"]
    assert await printed(sandbox, "overrides", "clear", "--service-id", 55) == ["2 deleted"]
    (left,) = (await as_json(sandbox, "overrides", "list", "--service-id", 56))["overrides"]
    assert left["match"] == {"service_id": 56}
    assert await printed(sandbox, "overrides", "clear") == ["1 deleted"]


async def test_a_refusal_of_the_gateway_is_printed(sandbox: Sandbox) -> None:
    for words, named in (
        ("add --callback profile=xml", "callback.profile must be one of trans"),
        ("clear gone", "there is no 'gone' among the overrides, or it was deleted\n"),
    ):
        result = await on(sandbox, "overrides", *words.split())

        assert (result.exit_code, result.stdout) == (1, "")
        assert named in result.stderr


async def test_trigger_does_not_wait_for_a_callback_that_is_dropped(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(settle_delay_ms=0)
    await add(sandbox, "--callback", "drop")

    document = await as_json(sandbox, "trigger", "collect", "--timeout", 600)

    assert document["callback"]["state"] == "dropped"
    assert document["status"]["status"] == "000"
