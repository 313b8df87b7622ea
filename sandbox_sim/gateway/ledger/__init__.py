"""The balances of services, and the ledger of their postings."""
