"""Writing a file so that it appears whole or not at all."""

import bz2
import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["opened_atomically", "refuse_existing"]


def refuse_existing(path: Any, *, force: bool) -> None:
    """Say so where a file is there already and may not be overwritten."""
    if Path(path).exists() and not force:
        raise FileExistsError(f"{path} is there already. Choose another name, or overwrite it with force (--force).")


@contextmanager
def opened_atomically(out: Any, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, packed where its name ends in .gz or .bz2; an open file is written as it is.

    It is written beside the place where it goes and put there at the end. A file that is there already is kept, unless
    `force`; also one that has come to be in the meantime.
    """
    if hasattr(out, "write"):
        yield out
        out.flush()
        return
    refuse_existing(out, force=force)
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            if target.suffix.lower() in (".gz", ".bz2"):
                packer: Any = gzip.open if target.suffix.lower() == ".gz" else bz2.open
                with packer(file, "wb") as packed:
                    yield packed
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o666 & ~_umask())
        if force:
            Path(part).replace(target)
        else:
            try:
                os.link(part, target)  # fails where the file has come to be
            except FileExistsError:
                refuse_existing(out, force=False)
                raise
    finally:
        Path(part).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
