"""The rules of the gateway: pure functions and immutable data, with `now` as a parameter."""
