"""The control API under `/_sandbox/`."""
