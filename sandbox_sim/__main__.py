"""`sandbox-sim` and `python -m sandbox_sim`."""


def main() -> None:
    """Run the command line. Exit with 130 if Ctrl-C comes while it is imported."""
    try:
        from sandbox_sim.cli import main as run  # noqa: PLC0415 -- imports take a tenth of a second
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
