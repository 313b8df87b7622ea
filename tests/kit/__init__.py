"""What the tests, `attack/`, `chaos/` and `bench/` share: servers, a Postgres, and requests."""
