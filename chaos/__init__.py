"""The crash test of `make chaos`: kills the server repeatedly and checks that nothing is lost."""
