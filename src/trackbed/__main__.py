"""`python -m trackbed` is the command `trackbed`."""

from trackbed.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
