"""Items command/*: commands as a shell runs them, without reports."""

import shlex
from functools import cache

from recording.comparisons import GRADED_METHODS, METHODS
from recording.items import item
from recording.workspace import OLD_MODELS, content, run, workspace

# Table of training data without its grades and groups.
TARGET = "-t y --drop grade --drop query"
MODELS = {
    "table": f"train.csv {TARGET} --ranker PairwiseRanker --alpha 0.01",
    "calibrated": f"train.csv --drop note --calibrate --metric recall@50 {TARGET}",
    "grouped": "grades.csv -t grade -g query --ranker PairwiseRanker --alpha 0.1",
    "sparse": "rows.svm --ranker TopPush --alpha 0.01",
}


@cache
def fitted_model(name: str) -> tuple[str, dict]:
    """Name of a model file in the workspace, and the output of the command that fits it."""
    file = f"{name}.forerank"
    return file, run("fit", *shlex.split(MODELS[name]), "-o", file)


def command(
    line: str, needs: str | None = None, writes: str | None = None, stdin: str | None = None
) -> dict:
    """Output of a command, and the file that it writes. The model that it needs is fitted before,
    and its file is the first argument.
    """
    action, *arguments = shlex.split(line)
    model = [] if needs is None else [fitted_model(needs)[0]]
    given = b"" if stdin is None else (workspace() / stdin).read_bytes()
    found = run(action, *model, *arguments, stdin=given)
    return found if writes is None else {**found, "written": content(writes)}


for name in MODELS:
    item(f"command/fit-{name}")(lambda name=name: fitted_model(name)[1])

# Options of `command` by item.
COMMANDS: dict[str, dict[str, str]] = {
    "fit-chosen-json": {"line": f"fit train.csv.gz {TARGET} -o a.forerank --json"},
    "fit-parquet-params": {
        "line": f"fit train.parquet {TARGET} -o b.forerank --params ranker.toml --alpha=2 --json"
    },
    "fit-semicolons-positive": {
        "line": f"fit semicolons.csv {TARGET} --positive no --encoding cp1252 -o c.forerank"
        " --category age --check 0 --metric pauc@0.2"
    },
    "fit-queries-graded": {"line": "fit queries.svm --metric ndcg@5 -o e.forerank --json"},
    "fit-skip-unlabelled": {
        "line": f"fit gaps.csv {TARGET} --skip-unlabelled --ranker RankBoost -o f.forerank"
    },
    "rank-csv": {
        "line": "rank new.csv -o ranked.csv",
        "needs": "table",
        "writes": "ranked.csv",
    },
    "rank-parquet": {
        "line": "rank train.parquet -o ranked.parquet --json",
        "needs": "table",
        "writes": "ranked.parquet",
    },
    "rank-standard-input": {"line": "rank - --top 5 -q", "needs": "table", "stdin": "new.csv"},
    "rank-probability": {
        "line": "rank new.csv --probability --top 20 -o likely.csv",
        "needs": "calibrated",
        "writes": "likely.csv",
    },
    "rank-grouped": {
        "line": "rank grades.csv --top 2 -o groups.tsv",
        "needs": "grouped",
        "writes": "groups.tsv",
    },
    "rank-svmlight": {"line": "rank rows.svm --top 10", "needs": "sparse"},
    "rank-allow-missing": {"line": "rank lacking.csv --allow-missing --top 5", "needs": "table"},
    "evaluate": {
        "line": "evaluate train.csv --by city --k 30 --curves curves.png",
        "needs": "table",
        "writes": "curves.png",
    },
    "evaluate-json": {"line": "evaluate train.parquet --json", "needs": "calibrated"},
    "evaluate-grouped": {"line": "evaluate grades.csv --json --k 3", "needs": "grouped"},
    "evaluate-sparse": {"line": "evaluate rows.svm --confidence 0.9", "needs": "sparse"},
    "compare": {
        "line": f"compare train.csv {TARGET} --folds 3 -m '{METHODS[0]}' -m '{METHODS[1]}'"
        " --record compare.jsonl",
        "writes": "compare.jsonl",
    },
    "compare-json": {
        "line": f"compare train.csv.gz {TARGET} --folds 3 -m Ranker -m pointwise-logistic"
        " --metric recall@30 --json"
    },
    "compare-graded": {
        "line": "compare queries.svm --folds 3 --metric ndcg@5"
        f" -m '{GRADED_METHODS[0]}' -m '{GRADED_METHODS[2]}'"
    },
    "explain": {"line": "explain new.csv --row 1 --row 17 --weights 8", "needs": "table"},
    "explain-json": {"line": "explain new.csv --json", "needs": "calibrated"},
    "explain-weights": {"line": "explain", "needs": "sparse"},
    "inspect": {"line": "inspect", "needs": "table"},
    "inspect-json": {"line": "inspect --json", "needs": "grouped"},
    "export": {
        "line": "export -o model.onnx --json",
        "needs": "calibrated",
        "writes": "model.onnx",
    },
    "export-sparse": {
        "line": "export -o sparse.onnx",
        "needs": "sparse",
        "writes": "sparse.onnx",
    },
    "export-text": {"line": "export -o text.onnx", "needs": "table"},
    "old-model": {"line": f"inspect '{OLD_MODELS}/format-1.forerank'"},
    "old-model-rank": {"line": f"rank '{OLD_MODELS}/format-1.forerank' old.csv"},
    "version": {"line": "--version"},
}
for name, options in COMMANDS.items():
    item(f"command/{name}", **options)(command)

ERRORS = {
    "no-file": "fit none.csv -t y -o x.forerank",
    "no-target": "fit train.csv -t yy -o x.forerank",
    "one-class": "fit one-class.csv -t y -o x.forerank",
    "empty": "fit empty.csv -t y -o x.forerank",
    "ragged": "fit ragged.csv -t y -o x.forerank",
    "unlabelled": "fit gaps.csv -t y -o x.forerank",
    "metric": "fit train.csv -t y --metric recall -o x.forerank",
    "ranker": "fit train.csv -t y --ranker TopRank -o x.forerank",
    "parameter": "fit train.csv -t y --ranker TopPush --alfa 1 -o x.forerank",
    "method": "compare train.csv -t y -m 'none such'",
    "not-a-model": "inspect train.csv",
}
ERRORS_WITH_MODEL = {
    "lacking-column": "rank lacking.csv",
    "no-probability": "rank new.csv --probability",
    "existing-file": "rank new.csv -o train.csv",
}


@item("command/errors")
def command_errors() -> dict:
    found = {name: command(line) for name, line in ERRORS.items()}
    with_model = {name: command(line, "table") for name, line in ERRORS_WITH_MODEL.items()}
    return {**found, **with_model}
