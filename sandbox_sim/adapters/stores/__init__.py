"""Stores: each keeps the state behind the `Store` port and passes the contract suite."""
