"""Balances and the ledger: accounts, transfers, manual entries, periods and the audit."""
