"""Another gateway with this same interface as a network, recorded and replayed. Source: D39."""
