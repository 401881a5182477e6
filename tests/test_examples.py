"""The examples run as they are given."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")
def test_kernels(tmp_path, capsys):
    runpy.run_path(str(EXAMPLES / "kernels.py"))["main"](str(tmp_path / "picture.png"))
    shown = capsys.readouterr().out
    figures = {line[:25].strip(): float(line.split()[-2]) for line in shown.splitlines()[1:]}
    assert figures["Nystroem"] > figures["linear"] + 0.3
    assert figures["random Fourier features"] > figures["linear"] + 0.3
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")
def test_grades(tmp_path, capsys):
    runpy.run_path(str(EXAMPLES / "grades.py"))["main"](str(tmp_path / "picture.png"))
    shown = capsys.readouterr().out
    figures = [float(line.split()[-1]) for line in shown.splitlines()[-5:]]
    assert min(figures) > 0.7
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")
def test_screening(tmp_path, capsys):
    runpy.run_path(str(EXAMPLES / "screening.py"))["main"](str(tmp_path / "picture.png"))
    shown = capsys.readouterr().out
    to_95 = {line.split()[0]: float(line.split()[2]) for line in shown.splitlines()[1:4]}
    assert to_95["greedy"] < to_95["lossmin"] < to_95["random"]
    assert float(shown.split()[-1].rstrip(".")) >= 0.95
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")
@pytest.mark.parametrize("name", ["network.py", "images.py"])
def test_networks(name, tmp_path, capsys):
    """Each loss ranks, and pairs at least as well as cross-entropy."""
    pytest.importorskip("torch", reason="torch is not installed")
    runpy.run_path(str(EXAMPLES / name))["main"](str(tmp_path / "picture.png"))
    auc = {
        line[:14].strip(): float(line[14:22]) for line in capsys.readouterr().out.splitlines()[1:]
    }
    assert min(auc["pairs"], auc["pairs + bank"], auc["top"]) > 0.8
    assert auc["pairs"] > auc["BCE"] - 0.005
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
