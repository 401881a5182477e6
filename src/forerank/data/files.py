"""Writing a file so that it appears whole or not at all."""

import bz2
import gzip
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["first_line", "opened_atomically", "refuse_existing"]


def refuse_existing(path: Any, *, force: bool) -> None:
    """FileExistsError where a file exists and may not be overwritten."""
    if Path(path).is_file() and not force:  # a device or a pipe is not overwritten
        raise FileExistsError(
            f"{path} exists already; choose another name, or overwrite it with force=True"
        )


@contextmanager
def opened_atomically(out: Any, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, packed where its name ends in .gz or .bz2; an open file is written as it
    is.

    It is written beside the place where it goes and put there at the end. A file that is there
    already is kept, unless `force`; also one that has come to be in the meantime.
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
    target = Path(out).resolve()  # what a link points to is written, not the link
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_UMASK
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:  # from before the file exists, so that no signal finds it unguarded
        with _new_file(part, out) as file:
            if target.suffix.lower() in (".gz", ".bz2"):
                packer: Any = gzip.open if target.suffix.lower() == ".gz" else bz2.open
                with packer(file, "wb") as packed:
                    yield packed
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, mode)
        if force:
            part.replace(target)
        else:
            _put(part, target)
    finally:
        with suppress(OSError):  # the name may be too long, or the directory closed
            part.unlink(missing_ok=True)


def _new_file(part: Path, out: Any) -> BinaryIO:
    """A file that only its owner reads until it is complete; where it cannot be made, the error
    names `out`.
    """
    try:
        return os.fdopen(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600),
            "wb",
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(out)) from None


def _put(part: Path, target: Path) -> None:
    """Under its name, where nothing else has come to be."""
    try:
        os.link(part, target)
    except FileExistsError:
        refuse_existing(target, force=False)
        raise
    except OSError:  # a file system without links
        refuse_existing(target, force=False)
        part.replace(target)


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Asked for once: there is no way to ask without setting it for a moment.
_UMASK = _umask()
