"""The use cases: what the gateway does, over ports, with no I/O of its own."""
