"""Where the program begins: Ctrl-C ends it without a traceback from its first line on, before anything is imported."""

import os
import signal

signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(130))


def main() -> None:
    """The program."""
    from handlers.cli.main import main as begin

    begin()


if __name__ == "__main__":
    main()
