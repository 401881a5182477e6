"""Entry point of the program `forerank`: signals and exit codes around `forerank.cli.app`.

A module of its own without heavy imports, so that signals are handled while libraries are still
being imported and functions compiled.
"""

import signal
import sys
from contextlib import suppress
from threading import Timer, main_thread
from types import FrameType
from typing import Any, NoReturn

# Signals that end the program, and the message on standard error.
_MESSAGES = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "terminated, since the terminal was closed",
}
# Seconds after which a signal that could not raise an exception is sent again.
_RETRY = 0.02
# Numbers of such signals.
_sent_again: list[int] = []


class _Stopped(SystemExit):
    """Raised by a signal that ends the program, so that temporary files are removed on exit."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def main() -> NoReturn:
    """Run the command that the arguments name, and exit."""
    try:
        _handle_signals()
        from forerank.cli.app import run

        run()
    except _Stopped as stopped:
        _end(stopped)
    except Exception:
        # Code whose callback was interrupted may fail before the signal is sent again.
        if not _sent_again:
            raise
        _end(_Stopped(_sent_again[0]))
    sys.exit(0)


def _end(stopped: _Stopped) -> NoReturn:
    with suppress(OSError):
        message = _MESSAGES[signal.Signals(stopped.number).name]
        print(f"forerank: {message}", file=sys.stderr)
    sys.exit(stopped.code)


def _handle_signals() -> None:
    """Raise `_Stopped` at signals with their default action; ignored ones (nohup) stay ignored."""
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    for name in _MESSAGES:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) in defaults:
            signal.signal(number, _stop)
    if hasattr(signal, "pthread_kill"):  # not on Windows
        sys.unraisablehook = _send_again


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped(number)


def _send_again(unraisable: Any) -> None:
    """Send a signal again that arrived in a finaliser or a callback of LLVM, where Python discards
    exceptions.
    """
    if not isinstance(unraisable.exc_value, _Stopped):
        sys.__unraisablehook__(unraisable)
        return
    number = unraisable.exc_value.number
    _sent_again.append(number)
    timer = Timer(_RETRY, signal.pthread_kill, (main_thread().ident, number))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
