"""``python -m noonmark``: the command line."""

from noonmark.cli import main

main()
