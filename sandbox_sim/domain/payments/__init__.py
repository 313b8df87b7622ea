"""Payments: the sandbox rules that decide them, and the states of a transaction."""
