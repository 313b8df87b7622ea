"""The fuzzers of `make fuzz`: random input for every path, connection, network and reader."""
