"""The memory store: plain containers, gone when the process ends."""
