"""What production adds to the pages: what waits for a person, attempts, and the networks. D39."""
