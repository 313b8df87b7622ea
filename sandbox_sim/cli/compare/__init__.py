"""`sandbox-sim compare`: where another implementation of the interface differs from ours."""
