"""What steers the sandbox: overrides, faults, the journal, events, snapshots, the clock."""
