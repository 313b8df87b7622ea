"""Payments in sandbox mode: the rules that decide, submitting, settling and queries."""
