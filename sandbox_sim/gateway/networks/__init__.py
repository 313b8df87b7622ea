"""Payments of production mode: what carries them, and how their outcomes are found out. D39."""
