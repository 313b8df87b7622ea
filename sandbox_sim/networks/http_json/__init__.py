"""Any HTTP API as a network, described in the configuration. Source: D39."""
