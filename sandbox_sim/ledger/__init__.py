"""Balances and the ledger: accounts, what moves money, and what must hold for all of it."""
