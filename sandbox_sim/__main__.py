"""`python -m sandbox_sim`."""

from sandbox_sim.cli import main

if __name__ == "__main__":
    main()
