"""The fuzzers of `make fuzz`: random bodies for every operation, and random byte streams."""
