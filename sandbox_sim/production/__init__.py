"""Production mode: what carries payments and messages, and how outcomes are found out."""
