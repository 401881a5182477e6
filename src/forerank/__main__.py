"""The program `forerank`: signals and exit codes around the commands (`forerank.cli.app`).

Light and apart from the commands, so that a signal is answered from the first moment on, also while
libraries are imported and functions are compiled.
"""

import signal
import sys
from contextlib import suppress
from threading import Timer, main_thread
from types import FrameType
from typing import Any, NoReturn

_WORDS = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "terminated, since the terminal was closed",
}


class _Stopped(SystemExit):
    """A signal that ends the program: raised, so that temporary files are removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def main() -> NoReturn:
    """Run the command that the arguments name, and exit."""
    try:
        _answer_signals()
        from forerank.cli.app import run

        run()
    except _Stopped as stopped:
        with suppress(OSError):
            print(f"forerank: {_WORDS[signal.Signals(stopped.number).name]}", file=sys.stderr)
        sys.exit(stopped.code)
    sys.exit(0)


def _answer_signals() -> None:
    """Raise `_Stopped` at the signals that ask a program to end; those that are ignored (nohup)
    stay so.
    """
    for name in _WORDS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) in (
            signal.SIG_DFL,
            signal.default_int_handler,
        ):
            signal.signal(number, _stop)
    if hasattr(signal, "pthread_kill"):  # not on Windows
        sys.unraisablehook = _stop_again


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped(number)


def _stop_again(unraisable: Any) -> None:
    """Send a signal again that came in a function whose exceptions go nowhere: a finaliser, a
    callback of LLVM.
    """
    if not isinstance(unraisable.exc_value, _Stopped):
        sys.__unraisablehook__(unraisable)
        return
    later = Timer(0.02, signal.pthread_kill, (main_thread().ident, unraisable.exc_value.number))
    later.daemon = True
    later.start()


if __name__ == "__main__":
    main()
