"""Atomic writing of files: a file appears complete or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from forerank.data.formats import is_compressed, opener

__all__ = ["first_line", "opened_atomically", "refuse_existing"]


def refuse_existing(path: Any, *, force: bool) -> None:
    """FileExistsError where a file exists and may not be overwritten."""
    if Path(path).is_file() and not force:  # a device or a pipe is not overwritten
        raise FileExistsError(
            f"{path} exists already; choose another name, or overwrite it with force=True"
        )


@contextmanager
def opened_atomically(out: Any, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, compressed if its name ends in .gz or .bz2; an open file is used as is.

    The file is written under a temporary name in the same directory and renamed at the end. An
    existing file is kept, unless `force`; also one that was created in the meantime.
    """
    if hasattr(out, "write"):
        yield out
        out.flush()
        return
    refuse_existing(out, force=force)
    if Path(out).exists() and not Path(out).is_file():
        with Path(out).open("wb") as file:  # a device or a pipe
            yield file
        return
    target = Path(out).resolve()  # the target of a link is written, not the link
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_UMASK
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:  # begun before the file exists, so that it is removed whenever a signal arrives
        with _new_file(part, out) as file:
            if is_compressed(target):
                with opener(target)(file, "wb") as compressed:
                    yield compressed
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, mode)
        if force:
            part.replace(target)
        else:
            _rename_new(part, target)
    finally:
        with suppress(OSError):  # the name may be too long, or the directory not writable
            part.unlink(missing_ok=True)


def _new_file(part: Path, out: Any) -> BinaryIO:
    """A new file that only its owner can read; an error on its creation names `out`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        return os.fdopen(os.open(part, flags, 0o600), "wb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(out)) from None


def _rename_new(part: Path, target: Path) -> None:
    """Rename a file; an error where the new name exists."""
    try:
        os.link(part, target)
    except FileExistsError:
        refuse_existing(target, force=False)
        raise
    except OSError:  # a file system without links
        refuse_existing(target, force=False)
        part.replace(target)


def first_line(error: BaseException) -> str:
    """First line of an error's message, without its full stop; the class if there is no message."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Read once, since reading it means setting it for a moment.
_UMASK = _umask()
