"""What happens, for those who wait for it: the live feed, waits, and what gets a log line."""
