"""Sending callbacks, and examining receivers."""
