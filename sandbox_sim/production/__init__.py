"""Production mode: sends payments and messages over networks, and finds out their outcomes."""
