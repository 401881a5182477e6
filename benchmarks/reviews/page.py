"""The tables and the figure of the screening simulation, as one Markdown page."""

from pathlib import Path

import numpy as np
from benchmarks.papers.common import Results
from benchmarks.papers.pages import Page, figure, table

from forerank.active import RecallBound, paired_t

from . import protocol

SETTING = """Each run knows one relevant and one irrelevant record, reads the record that the
method puts first, then retrains; when 5 % of the records read is more than one record, that many
are read at a time. Records are tf-idf vectors of the words and pairs of words of title and
abstract. Records are counted without the two seeds."""
METHODS = """Means over the reviews (of the means over the seedings). Records to find that share
of the relevant ones, and WSS@95. "difference": records to 95 % less those of the reference, the
mean over the reviews and its 95 % confidence interval (paired t over reviews, same seeds);
negative is less reading. Methods with fewer seedings are compared with the reference on these."""
STOPPING = """`RecallBound(target=0.95, confidence=0.95)`, evaluated after every record. "kept":
runs that ended at a recall of 0.95 or more. "read": records read, as a share of all, the mean
over reviews; "needed": the share after which 0.95 was in fact reached. Reading at random is the
worst case that the guarantee covers."""
REVIEWS = "Records to find 95 % of the relevant ones, the mean over the seedings."


def make(results: Results, out: Path) -> Page:
    """Draw the figure and make the page."""
    reviews = sorted({record["review"] for record in results.select(kind="run")})
    order = [protocol.ASREVIEW, *(method for part in protocol.methods() for method in part)]
    records = {m: results.select(kind="run", method=m) for m in dict.fromkeys(order)}
    records = {m: rs for m, rs in records.items() if {r["review"] for r in rs} == set(reviews)}
    _figure(records, out / "recall.png")
    sections = {
        "Verdicts": "\n".join(_verdicts(records, reviews)),
        "Methods": "\n\n".join(
            [METHODS, _methods(records, reviews), "![Recall by share read](recall.png)"]
        ),
        "When to stop": f"{STOPPING}\n\n{_stopping(records)}",
        "Review by review": f"{REVIEWS}\n\n{_reviews(records, reviews)}",
    }
    seedings = max(len(rs) for rs in records.values()) // len(reviews)
    run = f"{SETTING} {len(reviews)} reviews, up to {seedings} seedings."
    return Page("Screening systematic reviews, simulated", run, [], sections, "", "")


def by_review(records: list[dict], reviews: list[str], recall: str) -> np.ndarray:
    """The mean over the seedings of each review."""
    return np.array(
        [np.mean([r["to"][recall] for r in records if r["review"] == name]) for name in reviews]
    )


def against_reference(
    records: dict[str, list[dict]], method: str, reviews: list[str], recall: str = "0.95"
):
    """The paired test over the reviews, on the seedings that the method has."""
    seedings = {(r["review"], r["seeding"]) for r in records[method]}
    peer = [r for r in records[protocol.REFERENCE] if (r["review"], r["seeding"]) in seedings]
    return paired_t(by_review(records[method], reviews, recall), by_review(peer, reviews, recall))


def _verdicts(records: dict[str, list[dict]], reviews: list[str]) -> list[str]:
    full = max(len(rs) for rs in records.values())
    means = {
        m: by_review(rs, reviews, "0.95").mean() for m, rs in records.items() if len(rs) == full
    }
    best = min(means, key=means.__getitem__)
    lines = [
        f"- Of the methods with all seedings, {best} reads least to 95 %: {means[best]:.1f} "
        "records."
    ]
    ours = "all pairs and the unread, greedy"
    for recall in ("0.5", "0.8", "0.95", "1.0"):
        test = against_reference(records, ours, reviews, recall)
        lines.append(
            f"- {ours} against {protocol.REFERENCE}, records to {float(recall):.0%}: "
            f"{test.difference:+.1f} [{test.low:+.1f}, {test.high:+.1f}], p = {test.p:.2g} (paired "
            f"over {test.n} reviews)."
        )
    if protocol.ASREVIEW in records:
        pairs = {(r["review"], r["seeding"]): r["to"] for r in records[protocol.REFERENCE]}
        same = [r["to"] == pairs[r["review"], r["seeding"]] for r in records[protocol.ASREVIEW]]
        lines.append(
            f"- asreview's default and {protocol.REFERENCE} agree in every figure in {sum(same)} "
            f"of {len(same)} runs."
        )
    else:
        lines.append("- The package asreview is not installed: its default model was not run.")
    return lines


def _methods(records: dict[str, list[dict]], reviews: list[str]) -> str:
    rows = []
    for method, rs in sorted(
        records.items(), key=lambda item: by_review(item[1], reviews, "0.95").mean()
    ):
        test = against_reference(records, method, reviews)
        difference = (
            ""
            if method == protocol.REFERENCE
            else f"{test.difference:+.1f} [{test.low:+.1f}, {test.high:+.1f}]"
        )
        figures = [
            f"{by_review(rs, reviews, recall).mean():.1f}"
            for recall in ("0.5", "0.8", "0.95", "1.0")
        ]
        saved = np.mean(
            [np.mean([r["wss"] for r in rs if r["review"] == name]) for name in reviews]
        )
        per_round = 1000 * sum(r["seconds"] for r in rs) / max(sum(r["rounds"] for r in rs), 1)
        milliseconds = "" if method == protocol.ASREVIEW else f"{per_round:.0f}"
        rows.append(
            (method, *figures, f"{saved:.3f}", difference, milliseconds, len(rs) // len(reviews))
        )
    head = (
        "method",
        "50 %",
        "80 %",
        "95 %",
        "100 %",
        "WSS@95",
        "difference",
        "ms per round",
        "seedings",
    )
    return table(head, rows)


def _stopping(records: dict[str, list[dict]]) -> str:
    rows = []
    rule = RecallBound(0.95, 0.95)
    for method, rs in records.items():
        if not method.endswith(("greedy", "lossmin", "random")):
            continue
        ends = [protocol.stopped_at(r, rule) for r in rs]
        kept = np.mean([recall >= 0.95 - 1e-9 for _, recall in ends])
        read = np.mean([end / r["n_records"] for (end, _), r in zip(ends, rs, strict=True)])
        needed = np.mean([r["to"]["0.95"] / r["n_records"] for r in rs])
        rows.append(
            (method, f"{kept:.1%}", f"{read:.1%}", f"{1 - read:.1%}", f"{needed:.1%}", len(rs))
        )
    return table(("method", "kept", "read", "saved", "needed", "runs"), rows)


def _reviews(records: dict[str, list[dict]], reviews: list[str]) -> str:
    shown = [m for m in records if m.endswith("greedy")]
    rows = []
    for name in reviews:
        first = next(r for r in records[protocol.REFERENCE] if r["review"] == name)
        means = [f"{by_review(records[m], [name], '0.95')[0]:.0f}" for m in shown]
        rows.append((name, first["n_records"], first["n_relevant"], *means))
    return table(
        ("review", "records", "relevant", *(m.removesuffix(", greedy") for m in shown)), rows
    )


def _figure(records: dict[str, list[dict]], path: Path) -> None:
    share = np.linspace(0.0, 1.0, 401)
    groups = (
        ("rankers, greedy", [m for m in records if m.endswith("greedy")]),
        (
            "strategies",
            [m for m in records if m.startswith("all pairs and the unread") or m == "random"],
        ),
    )
    with figure(path, 1, 2, size=(11.5, 4.6), sharey=True) as (_, panels):
        for panel, (title, shown) in zip(panels, groups, strict=True):
            for k, method in enumerate(shown):
                curves = []
                for record in records[method]:
                    recall = np.concatenate(
                        [[0.0], np.cumsum(protocol.relevant_of(record)) / record["n_relevant"]]
                    )
                    curves.append(recall[(share * record["n_records"]).astype(int)])
                label = (
                    method.removesuffix(", greedy")
                    if title.startswith("rankers")
                    else method.rsplit(", ", 1)[-1]
                )
                panel.plot(share, np.mean(curves, axis=0), label=label, color=f"C{k}")
            panel.axhline(0.95, color="0.6", linestyle=":", linewidth=1)
            panel.set(title=title, xlabel="share of the records read", xlim=(0, 1), ylim=(0, 1.01))
            panel.grid(alpha=0.3)
            panel.legend(fontsize=9, loc="lower right")
        panels[0].set_ylabel("recall, mean over all runs")
