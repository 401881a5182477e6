import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import forerank
from forerank import losses, metrics, objectives, pairsums, solvers
from forerank.cli.output import EXTRAS

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("module", [forerank, losses, metrics, objectives, pairsums, solvers])
def test_public_names_exist_and_are_sorted(module):
    names = module.__all__
    assert all(hasattr(module, name) for name in names)
    # Constants, then classes, then functions, each in order, as the linter sorts them.
    assert names == sorted(
        names, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_is_light_and_using_it_loads_no_optional_package():
    assert (
        run(
            "import sys, forerank; print(*{'numba', 'sklearn', 'matplotlib'} & set(sys.modules))"
        ).split()
        == []
    )
    # scikit-learn itself loads pandas where it is installed.
    code = "import sys; from forerank import PairwiseRanker; print(*sys.modules)"
    assert not {"matplotlib", "rich"} & set(run(code).split())


def test_unknown_attributes_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'Rankr'"):
        _ = forerank.Rankr
    assert set(forerank.__all__) <= set(dir(forerank))


@pytest.mark.parametrize("name", ["bounds", "datasets", "io"])
def test_moved_modules_warn_under_their_old_names(name):
    with pytest.warns(FutureWarning, match=f"forerank.{name} is now"):
        module = getattr(forerank, name)
    assert module.__all__


def test_a_second_process_compiles_nothing():
    code = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from forerank import PairwiseRanker
X = np.random.default_rng(0).standard_normal((500, 4))
for loss in ("squared_hinge", "logistic"):
    PairwiseRanker(loss).fit(X, X[:, 0] > 0)
kernels = {
    f for name, module in list(sys.modules.items()) if name.startswith("forerank")
    for f in vars(module).values() if isinstance(f, Dispatcher)
}
stats = [f.stats for f in kernels]
hits = sum(sum(s.cache_hits.values()) for s in stats)
print(hits, sum(sum(s.cache_misses.values()) for s in stats))
"""
    run(code)
    hits, misses = map(int, run(code).split())
    assert hits > 5
    assert misses == 0


def test_the_examples_of_the_readme_run(capsys):
    ranking, labelling = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL
    )
    namespace: dict = {}
    exec(ranking, namespace)
    mean, reason = capsys.readouterr().out.splitlines()
    assert 0.8 < float(mean) < 1.0
    assert reason == namespace["ranker"].reason_
    assert namespace["digit"][namespace["best_first"][0]] == 8
    exec(labelling, namespace)
    read, _, total, _ = capsys.readouterr().out.split()
    assert total == "1795"
    assert int(read) < 600


def extra_packages(extras, name):
    """The packages that an extra brings, by the names they are imported by."""
    packages = set()
    for requirement in extras[name]:
        own = re.fullmatch(r"forerank\[(.*)\]", requirement)
        if own:
            packages |= {
                each for part in own[1].split(",") for each in extra_packages(extras, part)
            }
        else:
            packages.add(re.match(r"[\w-]+", requirement)[0])
    return packages


def test_the_line_of_the_readme_installs_what_its_commands_need():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    lines = re.findall(
        r"^pip install '(forerank|\.)\[(\w+)\]'",
        (ROOT / "README.md").read_text(),
        flags=re.MULTILINE,
    )
    assert lines == [("forerank", "report"), (".", "report")]
    # `export` and `label` have extras of their own, which the README names or does not show.
    apart = {package for package, extra in EXTRAS.items() if extra in ("onnx", "label")}
    assert extra_packages(extras, "report") >= EXTRAS.keys() - apart
    assert extra_packages(extras, "all") >= EXTRAS.keys()
    for package, extra in EXTRAS.items():
        assert package in extra_packages(extras, extra)


def test_the_repository_names_no_machine():
    tracked = [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("*.md"),
        *ROOT.glob("scripts/*"),
    ]
    assert len(tracked) > 20
    for path in tracked:
        assert not re.search(r"/(work|root|home)/", path.read_text()), path
