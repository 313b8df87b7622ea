"""HTTP: connections, requests in, answers out. Nothing here knows what a payment is."""
