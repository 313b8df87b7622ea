"""The simulated interface: from the request of a client to its answer."""
