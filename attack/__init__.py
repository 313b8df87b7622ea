"""The attacks of `make attack` and the fuzzers of `make fuzz`, against real server processes."""
