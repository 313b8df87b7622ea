"""`sandbox-sim transactions refund`: pays a collection back to its payer. Source: D45."""

import getpass
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from sandbox_sim.cli.client import Session, asks
from sandbox_sim.cli.options import ids_of
from sandbox_sim.records.transactions import status_words


def _amount(_context: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    """An amount as it goes to the control API, which reads a text exactly."""
    if text is None:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount <= 0:
        raise click.BadParameter(f"{text!r} is no amount above 0, such as 10.50")
    return format(amount, "f")


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="[SERVICE_ID] ID", callback=ids_of)
@click.option("--amount", callback=_amount, help="A part; without it all that is left.")
@click.option("--by", default=getpass.getuser, help="Who refunds; by default your user.")
@click.option("--reason", required=True, help="Why; it is kept with your name.")
@click.option("--id", "transaction_id", help="The id of the refund; a repeated one is refused.")
@click.option("--mode", type=click.Choice(["S", "P"]), help="Of two, the one of this mode.")
@asks
def refund(session: Session, /, ids: tuple[str, ...], **body: str | None) -> None:
    """Pay a successful collection, or a part of it, back to its payer.

    The refund is a payout out of the wallet of collections, and of mode P over the network that
    collected. All refunds of a collection together are at most what was collected. There is no
    callback.

    ID is the transaction_id of the collection, its network transaction id or the id of one of its
    callbacks.
    """
    given = {name: value for name, value in body.items() if value is not None}
    session.ask("POST", "transactions", *ids, "refund", body=given, lines=_refunded)


def _refunded(document: dict[str, Any]) -> Iterator[str]:
    money = f"{document['amount']} {document['currency_code']}"
    status = status_words(document["status"])
    yield (
        f"{document['transaction_id']} pays back {money} to {document['party']} and is {status}: "
        f"{document['said']}"
    )
