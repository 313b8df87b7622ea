"""HTTP: the twelve operations of the interface, and the control API and pages of `/_sandbox/`."""
