"""Mutation testing of the rules that decide about money and outcomes."""
