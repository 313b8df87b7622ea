"""Adapters of the networks that carry payments and messages in production mode."""
