"""The crash test of `make chaos`: kill the server again and again, then prove nothing was lost."""
