"""`sandbox-sim serve`: the process, its workers, and the signals that end it."""
