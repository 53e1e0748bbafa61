"""``noonmark`` and ``python -m noonmark``: the command line.

To read the modules of the command line takes a second or more. Ctrl-C ends the program meanwhile as
it ends any other, without a stack trace; from then on each command says what Ctrl-C does.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line; what the console script calls."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from noonmark.cli import main as run  # door: it is what takes so long

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
