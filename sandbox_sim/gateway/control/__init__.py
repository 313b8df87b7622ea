"""The use cases of the control API."""
