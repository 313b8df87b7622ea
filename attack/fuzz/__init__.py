"""The fuzzers of `make fuzz`: random bodies on every operation, and random bytes on connections."""
