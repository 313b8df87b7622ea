"""The adapter for SMS over SMPP 3.4."""
