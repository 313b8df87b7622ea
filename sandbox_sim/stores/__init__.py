"""Stores: implementations of the `Store` port; each passes the contract suite."""
