"""Controls of the sandbox: overrides, faults, journal, events, snapshots and the clock."""
