"""`sandbox-sim compare`: finds the differences between another implementation and ours."""
