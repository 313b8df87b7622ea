"""Adapters of networks: what carries payments and messages in production mode."""
