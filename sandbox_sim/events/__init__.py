"""The live feed of events, waits for records, and the limit on log lines."""
