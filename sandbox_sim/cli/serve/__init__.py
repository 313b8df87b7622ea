"""`sandbox-sim serve`: the process, its workers, and the signals that stop it."""
