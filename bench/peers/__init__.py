"""What users could run instead of sandbox_sim, measured beside it: `make bench-peers`."""
