"""Payments: the sandbox rules that decide them, and the life of a transaction."""
