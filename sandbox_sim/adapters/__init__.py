"""Implementations of the ports: clock, ids, stores, callback sender, made-up people."""
