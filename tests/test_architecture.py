"""The structure of the package: which folder may import which, names that stay private, and the
public names.
"""

import ast
import importlib
from pathlib import Path

import pytest

import forerank

PACKAGE = Path(forerank.__file__).parent
# Empty where the tests are run without a clone.
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
# From the ground up: a module imports from its own folder and from those before it.
ORDER = [
    # Used everywhere.
    "exceptions", "_typing", "_text", "_kernels", "_sorting", "_validation",
    # Numbers.
    "losses", "graphs", "design", "pairsums", "objectives", "sampling", "solvers", "trees",
    # What people fit and measure, and the rows they do it with.
    "dask", "metrics", "torch", "data", "estimators", "selection", "active",
    # Files, pages, people.
    "models", "plots", "workflows", "label", "cli", "__main__",
]  # fmt: skip


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), ast.parse(path.read_text())


def imports(tree):
    """Pairs (module without "forerank.", imported name or None)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            base, _, module = (node.module or "").partition(".")
            if base == "forerank":
                for alias in node.names:
                    yield (module, alias.name) if module else (alias.name, None)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("forerank."):
                    yield alias.name.removeprefix("forerank."), None


def folder(module):
    return module.partition(".")[0]


def test_imports_point_one_way():
    place = {name: number for number, name in enumerate(ORDER)}
    upward = set()
    for module, tree in modules():
        if not module:
            continue
        for imported, _ in imports(tree):
            if (
                folder(imported) != "__version__"
                and place[folder(imported)] > place[folder(module)]
            ):
                upward.add((module, folder(imported)))
    assert upward == set()


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def private_uses(module, tree):
    """Names with an underscore that a module takes from another folder, by an import or as an
    attribute.
    """
    homes = {
        name or imported: f"{imported}.{name}" if name else imported
        for imported, name in imports(tree)
    }
    homes = {name: home for name, home in homes.items() if folder(home) != folder(module)}
    for home in homes.values():
        if any(map(is_private, home.split(".")[1:])):
            yield home
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            home = homes.get(getattr(node.value, "id", ""))
            if home:
                yield f"{home}.{node.attr}"


def test_private_names_stay_in_their_folder():
    assert {
        (module, use) for module, tree in modules() for use in private_uses(module, tree)
    } == set()


# Bars that a file, a function and the root of the package keep to.
MOST_LINES = 500
MOST_LINES_OF_BODY = 60
MOST_ROOT_MODULES = 10


def body_lines(function):
    """Number of lines of a function's body, without its docstring."""
    has_docstring = ast.get_docstring(function) is not None
    body = function.body[1:] if has_docstring else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_files_and_functions_are_short():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_ROOT_MODULES
    files = [path for folder in (PACKAGE, BENCHMARKS) for path in folder.rglob("*.py")]
    long_files = [path for path in files if len(path.read_text().splitlines()) > MOST_LINES]
    assert long_files == []
    long_functions = [
        f"{module}.{node.name}"
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and body_lines(node) > MOST_LINES_OF_BODY
    ]
    assert long_functions == []


PUBLIC = {
    "forerank": """
        AATPRanker ActiveSamplingRanker AdditiveFeatures BoostedRanker CombinedRanker
        CombinedSGDRanker MAPRanker
        OWPCRanker PNormPush PairwiseRanker PartialAUCRanker PointwiseRanker PoolRanker
        QuadraticFeatures
        RankBoost RankNCG RankNet Ranker SparseTopPush TopPush TopRanker active compare
        data estimators graphs losses metrics models open_rows
    """,
    "forerank.active": """
        Audit Budget Diverse Entropy Greedy IrrelevantInARow LabellingLoop LossMin MissingEstimate
        PairLossMin PoolRanker audit_order estimate_missing label recall_by_confidence
        Random RankThreshold RankingStable Reading RecallBound Simulation Step
        StoppingRule Strategy StrategyComparison Uncertain compare compare_strategies
        make_strategy paired_t rank_threshold relevance_posterior score_rows simulate
    """,
    "forerank.design": """
        CSRDesign Design ExtraRowDesign make_design merge_equal_rows standardise
        sum_over_chunks
    """,
    "forerank.estimators": """
        AATPRanker ActiveSamplingRanker AdditiveFeatures BoostedRanker CombinedRanker
        CombinedSGDRanker MAPRanker
        OWPCRanker PNormPush PairwiseRanker PartialAUCRanker PointwiseRanker PoolRanker
        QuadraticFeatures
        RankBoost RankNCG RankNet SparseTopPush TopPush TopRanker
    """,
    "forerank.exceptions": """
        CsvProblem DataFileError ForerankError ModelFileError ProjectFileError Refused
    """,
    "forerank.losses": """
        DirectLogistic ERFC_SCALE ErfcLogistic Exponential Hinge Logistic Loss
        SmoothedHinge Squared SquaredHinge get_loss logistic_kernel logistic_rows
    """,
    "forerank.graphs": """
        GRAPHS bipartite chain check_edges lowest_first numbered_edges one_against_rest
        order
    """,
    "forerank.metrics": """
        AucInterval SCORERS auc_interval average_precision for_lightgbm for_xgboost get_scorer
        ndcg partial_auc
        pos_at_top precision_at_k rank_loss recall_at_k roc_auc tpr_at_fpr wmw
        work_saved
    """,
    "forerank.models": """
        COLUMN_KINDS Model load_model read_card save_model
    """,
    "forerank.objectives": """
        AllPairs Combined Curved Linearization Objective Pointwise Profiled SmoothObjective
        SmoothTop Smoothable for_lightgbm for_xgboost
    """,
    "forerank.pairsums": """
        ErfcPairs ExponentialPairs HingePairs LogisticPairs LogisticSources PairBlocks
        SmoothedHingePairs SquaredPairs erfc_series erfc_series_bound erfc_sum erfc_sum_direct
        margin_moments
    """,
    "forerank.plots": """
        AlphaPathDisplay ColumnCurvesDisplay CriticalDifferenceDisplay HitsDisplay
        RoundsDisplay ScoreDistributionDisplay TopStabilityDisplay draw_curves
    """,
    "forerank.sampling": """
        Drawn PairSampler STRATEGIES
    """,
    "forerank.selection": """
        Ranker method_names method_title
    """,
    "forerank.solvers": """
        Iteration Progress SolverResult accelerated_dual bundle choose_solver
        method_of_multipliers minimise ncg newton pointwise_dual working_set_newton
    """,
    "forerank.torch": """
        AcrossProcesses CombinedLoss MemoryBankLoss PairwiseLoss RankingMetrics TopLoss
        combined_loss gather_rows pairwise_loss to_arrays top_loss
    """,
    "forerank.trees": """
        AveragedGrower BACKENDS Backend Gradient Grower GrowthSettings TrainingRows TreeEnsemble
        choose_backend has_lightgbm make_grower model_of_mean
    """,
    "forerank.workflows.compare": """
        Comparison compare corrected_t_test holm shown_row
    """,
    "forerank.workflows.report": """
        Report make_report
    """,
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names(module):
    if module == "forerank.torch":
        pytest.importorskip("torch", reason="torch is not installed")
    assert sorted(importlib.import_module(module).__all__) == sorted(PUBLIC[module].split())
