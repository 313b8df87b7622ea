"""HTTP: connections, bytes in and out; nothing of payments."""
