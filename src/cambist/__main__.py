"""`python -m cambist` is the `cambist` command."""

from .engine.cli import main

if __name__ == "__main__":
    main()
