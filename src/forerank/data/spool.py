"""Temporary directories for rows, which a later process removes if this one is killed."""

import os
import re
import shutil
import socket
import tempfile
from pathlib import Path
from weakref import finalize

__all__ = ["SpoolDirectory"]

_PREFIX = "forerank-rows"


def _host() -> str:
    return re.sub(r"\W", "", socket.gethostname()) or "host"


class SpoolDirectory:
    """A directory below TMPDIR that is removed by `close`, at the end of the process, or, after a
    kill, when the next one is made. Its name has the host and the process.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        _remove_abandoned(root)
        name = f"{_PREFIX}-{_host()}-{os.getpid()}-"
        self.path = Path(tempfile.mkdtemp(prefix=name, dir=root))
        self._finalize = finalize(self, _remove, self.path, os.getpid())

    def free_bytes(self) -> int:
        """Room on its disk."""
        return shutil.disk_usage(self.path).free

    def close(self) -> None:
        """Remove the directory."""
        self._finalize()


def _remove(path: Path, process: int) -> None:
    """Remove the directory of a process; not in a copy of it by fork, which ends earlier."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def _remove_abandoned(root: Path) -> None:
    """Remove directories of processes of this host that have ended."""
    for path in root.glob(f"{_PREFIX}-{_host()}-*"):
        number = path.name.split("-")[3]
        if number.isdigit() and not _is_running(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # signal 0 would end the process there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True
