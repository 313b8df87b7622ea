"""The sandbox rules as a network. Source: D39, sandbox."""
