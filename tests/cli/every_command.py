"""All commands, and lines that run those of docs/control-api.md."""

from collections.abc import Iterator

import click


def commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    """A command, and all below it if it is a group, each after its full name."""
    yield " ".join(names), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, *names, name)


# In an order in which each finds what it needs.
COMMANDS = """
trigger collect --set transaction_id=T1 --no-wait
trigger sms --no-wait
transactions list
transactions show 55 T1
transactions settle 55 T1 cancelled
clock advance 5m
clock freeze
clock resume
clock show
clock reset
callbacks list
callbacks wait --match transaction_id=T1
callbacks resend --failed
callbacks retry --all
sms list
sms wait
requests list
requests find --match transaction_id=T1
requests wait
overrides add --status 003 --once
overrides list
overrides clear
faults add --status 429 --once
faults list
faults clear
ledger show
ledger audit
ledger topup 55 10
inbox show trigger
snapshot save before
snapshot list
reset
snapshot load before
snapshot delete before
seed --seed 7 --count 3 --service-id 77
readyz
config check
config show
config show --running
config set settle_delay_ms=5
config reset
openapi
"""
