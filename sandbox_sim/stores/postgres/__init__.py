"""The Postgres store: servers that share one database act as one gateway."""
