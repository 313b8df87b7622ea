"""Callbacks under `/_sandbox/`: the next attempt now, and the examination of a receiver."""
