"""Identifiers from random bits, which cannot be guessed."""

import secrets


def order_key() -> str:
    """The secret part of the address of an order: 22 characters that are safe in a URL."""
    return secrets.token_urlsafe(16)


def transaction_id(order_number: int) -> str:
    """A new `transaction_id`, unique over restarts of the shop too.

    Each payment of an order has its own: the gateway takes a repeated id for a repeated request.
    """
    return f"SHOP-{order_number}-{secrets.token_hex(4)}"
