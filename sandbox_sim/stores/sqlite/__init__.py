"""The SQLite store: one file, written by one thread."""
