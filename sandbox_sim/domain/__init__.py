"""The rules of the gateway: pure functions and frozen data, with `now` as a parameter."""
