"""Record files: JSON lines that survive an interruption, so that long work can be resumed.

The first line holds the settings of the work, each further line one result. `append` returns when
the line is on disk (fsync). A line is complete when it ends in a newline; an incomplete last line,
left by an interruption, is removed when the file is opened again. A file with other settings is
refused.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     path = Path(folder) / "runs.jsonl"
...     RecordFile(path, {"rows": 100}, kind="study").append({"run": 0, "auc": 0.9})
...     resumed = RecordFile(path, {"rows": 100}, kind="study")
>>> resumed.lines
[{'run': 0, 'auc': 0.9}]
"""

import json
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import joblib
import scipy.sparse as sp

__all__ = ["RecordFile", "content_hash"]


class RecordFile:
    """Settings and results of one piece of work, in a file of JSON lines.

    Parameters
    ----------
    path : path or None
        Created, with its folder, where it does not exist; None keeps nothing on disk.
    settings : dict
        Written to the first line of a new file; an existing file must have equal ones.
    kind : str
        The work, as messages name it: "labelling loop" gives "the record of a labelling loop".
    hashes : mapping, optional
        Names of settings that are hashes, each with the phrase that reports a difference, such as
        ``{"data": "other values or labels"}``.
    noted : collection of str, optional
        Names of settings that are written and may differ, such as versions of packages.
    exclusive : bool, default=False
        Whether to lock the file against other processes until `close` (where the system has
        `flock`). A record file is a context manager that closes itself.

    Attributes
    ----------
    settings : dict
        Those in the file.
    lines : list of dict
        Results that the file held when it was opened.
    """

    def __init__(
        self,
        path: Any,
        settings: Mapping[str, Any],
        *,
        kind: str,
        hashes: Mapping[str, str] | None = None,
        noted: Collection[str] = (),
        exclusive: bool = False,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.settings: dict[str, Any] = json.loads(_encoded(settings))
        self.lines: list[dict[str, Any]] = []
        self._kind = kind
        self._locked = ExitStack()
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            file = opened.enter_context(self.path.open("a+b"))
            if exclusive:
                self._lock(file)
            self._read(file, hashes or {}, noted)
            if exclusive:
                self._locked = opened.pop_all()

    def __enter__(self) -> "RecordFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock."""
        self._locked.close()

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one result; RuntimeError where the file was changed since the last access."""
        if self.path is None:
            return
        size = self.path.stat().st_size if self.path.exists() else None
        if size != self._size:
            change = "is gone" if size is None else "was changed by another program or object"
            raise RuntimeError(
                f"{self.path} {change}, so nothing was written; open the record again to continue."
            )
        with self.path.open("ab") as file:
            self._write(file, line)

    def parsed(self, parse: Callable[[dict[str, Any]], Any]) -> list[Any]:
        """`parse(line)` of each of `lines`; its KeyError, TypeError or ValueError is raised as a
        ValueError that names the file and the line.
        """
        results = []
        for number, line in enumerate(self.lines, start=2):
            try:
                results.append(parse(line))
            except (KeyError, TypeError, ValueError) as error:
                missing = isinstance(error, KeyError)
                problem = f"the entry {error} is missing" if missing else str(error)
                raise self._unusable(number, problem) from None
        return results

    def _read(self, file: BinaryIO, hashes: Mapping[str, str], noted: Collection[str]) -> None:
        file.seek(0)
        content = file.read()
        complete = content[: content.rfind(b"\n") + 1]
        first, *others = complete.splitlines() or [b""]
        if first:
            self._check_settings(_decoded(first), hashes, noted)
        else:
            # The first line may be incomplete too; it is recognised by its first entry.
            start = _encoded(dict([next(iter(self.settings.items()))]))[:-1]
            if not (content.startswith(start) or start.startswith(content)):
                raise self._unrelated()
        for number, text in enumerate(others, start=2):
            line = _decoded(text)
            if line is None:
                raise self._unusable(number, f"expected a JSON object, found {text[:40]!r}")
            self.lines.append(line)
        file.truncate(len(complete))
        self._size = len(complete)
        if not complete:
            self._write(file, self.settings)

    def _check_settings(
        self, found: dict[str, Any] | None, hashes: Mapping[str, str], noted: Collection[str]
    ) -> None:
        if found is None or next(iter(self.settings)) not in found:
            raise self._unrelated()
        differences = [
            hashes.get(name, f"{name} = {found.get(name)!r} in the file, {value!r} now")
            for name, value in self.settings.items()
            if found.get(name) != value and name not in noted
        ]
        if differences:
            raise ValueError(
                f"{self.path} is the record of another {self._kind} ({'; '.join(differences)}). "
                "Use the same data and settings, choose another path, or delete the file."
            )
        self.settings = found

    def _write(self, file: BinaryIO, line: Mapping[str, Any]) -> None:
        file.write(_encoded(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())
        self._size = file.tell()

    def _lock(self, file: BinaryIO) -> None:
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{self.path} is being written by another {self._kind}; wait until it has ended, "
                "or choose another path."
            ) from None
        except OSError:  # a file system without locks
            return

    def _unrelated(self) -> ValueError:
        return ValueError(
            f"{self.path} is not the record of a {self._kind}; choose another path, or delete the "
            "file."
        )

    def _unusable(self, number: int, problem: str) -> ValueError:
        return ValueError(
            f"{self.path}, line {number}: {problem.rstrip('.')}. Delete this line, or choose "
            "another path."
        )


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode(errors="surrogatepass")


def _decoded(text: bytes) -> dict[str, Any] | None:
    """The object in one line; None where it holds something else."""
    try:
        line = json.loads(text)
    except ValueError:  # neither JSON nor UTF-8
        return None
    return line if isinstance(line, dict) else None


def content_hash(value: Any) -> str:
    """A hash of the values alone; a sparse matrix also has flags, which change as it is used."""
    if sp.issparse(value):
        csr = value.tocsr()
        return str(joblib.hash(("csr", tuple(csr.shape), csr.data, csr.indices, csr.indptr)))
    if isinstance(value, list | tuple):
        return str(joblib.hash([content_hash(part) for part in value]))
    return str(joblib.hash(value))
