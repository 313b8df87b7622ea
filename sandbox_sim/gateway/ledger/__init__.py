"""Balances of services, and the ledger that they are sums of."""
