"""Compiled functions work whatever happens to the cache of compiled code."""

import errno
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

import forerank
from forerank import _kernels
from forerank._kernels import compiled

PACKAGE = Path(forerank.__file__).parent
CODE = """
import pkgutil, importlib
import forerank
from forerank.pairsums import hinge
for module in pkgutil.walk_packages(forerank.__path__, "forerank."):
    if not {"papers", "torch", "__main__"} & set(module.name.split(".")):
        importlib.import_module(module.name)
print(*hinge.margin_moments([0.0, 3.0], [0.5, 2.5], targets_are="upper")[0])
"""


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.fixture
def state(monkeypatch, tmp_path):
    """As in a new process, with a cache of its own."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_kernels, "_state", _kernels._State())


def made():
    """A function that no other test has compiled."""

    @compiled
    def double(x):
        return 2 * x

    return double


def n_hits(function):
    return sum(function.stats.cache_hits.values())


def test_without_a_directory_that_can_be_written_everything_is_compiled_and_one_line_says_so(
    tmp_path,
):
    shutil.copytree(PACKAGE, tmp_path / "forerank", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [tmp_path / "forerank", *(tmp_path / "forerank").rglob("*/")]:
        (folder / "__pycache__").touch()  # no directory can be made there, not even by root
    nowhere = "/dev/null/nowhere"
    environment = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), nowhere)
    out, err = python(CODE, PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR="", **environment)
    assert out == ["2.0 1.0"]
    assert re.fullmatch(
        r"compiled code of forerank cannot be cached .* set NUMBA_CACHE_DIR to a writable .*\n",
        err,
    )
    assert python(
        "import forerank.metrics", PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR="", **environment
    ) == ([], "")


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("kept", [0, 40, -9])
def test_a_damaged_cache_is_replaced(state, tmp_path, suffix, kept):
    assert made()(2) == 4
    (path,) = tmp_path.rglob(f"*{suffix}")
    path.write_bytes(path.read_bytes()[:kept])
    again, then = made(), made()
    assert again(2) == then(2) == 4
    assert (n_hits(again), n_hits(then)) == (0, 1)


def test_a_full_disk_is_said_once(state, monkeypatch, caplog):
    def full(self, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    with caplog.at_level(logging.WARNING, logger="forerank"):
        assert made()(2) == 4
        assert made()(2.5) == 5.0
    assert len(caplog.messages) == 1
    assert "(no space left on device)" in caplog.messages[0]


def test_a_cache_that_can_only_be_read_is_read(state, monkeypatch, caplog):
    def closed(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    assert made()(2) == 4
    monkeypatch.setattr("tempfile.TemporaryFile", closed)
    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", closed)
    function = made()
    assert function(2) == 4
    assert n_hits(function) == 1
    assert caplog.messages == []
    assert function(2.5) == 5.0
    assert "(permission denied)" in caplog.messages[0]


def test_code_that_belongs_to_another_signature_is_not_used(state):
    first = made()
    assert first(2) == 4
    cache = first._cache._files._cache_file
    (key,) = cache._load_index()
    cache._save_index(
        {((numba.float64,), *key[1:]): cache._data_name(1)}
    )  # as two processes at once may leave it
    other, then = made(), made()
    assert other(2.5) == then(2.5) == 5.0
    assert (n_hits(other), n_hits(then)) == (0, 1)


def test_compilation_of_many_functions_is_said_once_and_not_where_nothing_is_compiled(
    state, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, logger="forerank")
    for dtype in (np.int8, np.int16):
        made()(dtype(1))
    assert caplog.messages == []
    for dtype in (np.int32, np.int64, np.float32):
        made()(dtype(1))
    assert caplog.messages == ["compiling once, about 10 s"]
    caplog.clear()
    monkeypatch.setattr(_kernels, "_state", _kernels._State())
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.float32):
        function = made()
        function(dtype(1))
        assert n_hits(function) == 1
    assert caplog.messages == []


def test_every_compiled_function_is_declared_so():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "_kernels.py":
            assert not re.search(r"\bnjit\b|numba\.jit", path.read_text()), path
