"""The memory store: plain containers, lost when the process ends."""
