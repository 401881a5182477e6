"""The claims of section 4 of the paper, and what is seen here."""

from collections import Counter
from collections.abc import Sequence

from ..common import Results
from ..pages import Claim, listed
from . import protocol, published
from .records import (
    RIVALS,
    best_gammas,
    curve_of,
    gamma_name,
    grown,
    growth_slope,
    outcome,
    paper_verdict,
    per_pool,
    shared_gammas,
    total,
)

HARD = "here the hard ones find their pairs in sorted scores and look at no others"


def claims(results: Results, names: Sequence[str], with_gammas: Sequence[str]) -> list[Claim]:
    """The claims of section 4, and what is seen here."""
    known = [name for name in names if name in published.AUC]
    found = [_t_tests(results, known, rival) for rival in RIVALS]
    agree = [name for name in with_gammas if name in published.GAMMA]
    for who in ("Soft-Close", "Soft-Correct"):
        shared = {name: bool(shared_gammas(results, name, who)) for name in agree}
        text = f"the best gamma of {who.lower()} is one of the paper's"
        lower = "; ".join(_at_the_papers(results, n, who) for n in agree if not shared[n])
        seen = f"see Table 5; AUC here at the paper's gamma below the best: {lower or '-'}"
        found.append(Claim("Table 5", text, seen, shared))
    pairs = {name: _pairs_are_best(results, name) for name in with_gammas}
    text = "gamma = 1 or uniform, pairs alone or nearly, is among the best of the exact CRC"
    found.append(Claim("section 4.5", text, "see Table 5", pairs))
    return [*found, *_rejections(results, known), *_times(results, known)]


def _t_tests(results: Results, known: Sequence[str], rival: str) -> Claim:
    """Soft-correct against a rival, here and in the paper."""
    outcomes = {name: outcome(results, name, rival) for name in known}
    theirs = {name: paper_verdict(name, rival) for name in known}
    other = listed(name for name in known if outcomes[name] != theirs[name])
    seen = (
        f"win/loss/tie {total(outcomes.values())} on {len(known)} sets; in the paper "
        f"{total(theirs.values())} on these and {published.T_TESTS[rival]} on 14; another outcome "
        f"than there: {other}"
    )
    count = Counter(outcomes.values())
    text = f"soft-correct wins against {rival} more often than it loses"
    return Claim("Table 3", text, seen, count["win"] > count["loss"])


def _rejections(results: Results, known: Sequence[str]) -> list[Claim]:
    """The claims on Figure 2, for plain rejection."""
    few, more = {}, {}
    for name in known:
        close, correct = (
            curve_of(results, name, who)[1:, 2] for who in ("Soft-Close", "Soft-Correct")
        )
        few[name] = bool(close.max() < 10.0)
        more[name] = bool(correct[-1] > correct[0])
    text = "soft-close rejects fewer than 10 candidates for each one kept"
    return [
        Claim("Figure 2", text, "plain rejection, all rounds", few),
        Claim(
            "Figure 2",
            "soft-correct rejects more as the pool grows",
            "the last round against the first",
            more,
        ),
    ]


def _times(results: Results, known: Sequence[str]) -> list[Claim]:
    """The claims of section 4.4."""
    hard, rank_svm, order = {}, {}, {}
    for name in known:
        seconds = {r["method"]: r["seconds"] for r in results.select(kind="time", data=name)}
        for kind in ("Close", "Correct"):
            hard[name, kind] = seconds[f"Soft-{kind}"] < seconds[f"Hard-{kind}"]
        order[name] = seconds["Random"] < seconds["Soft-Close"] < seconds["Soft-Correct"]
        rank_svm[name] = seconds["Soft-Correct"] < seconds["ERankSVM"]
    slopes, found = {}, []
    for who in ("Soft-Correct", "ERankSVM"):
        counts, times = grown(results, who)
        slopes[who] = growth_slope(results, who)
        span = f"{times[0]:.2f} s on {counts[0]:,} rows, {times[-1]:.2f} s on {counts[-1]:,}"
        found.append(f"{who} {span} (slope {slopes[who]:.2f})")
    slower = bool(slopes["Soft-Correct"] < slopes["ERankSVM"])
    text = "time of soft-correct grows slower with the rows than that of ERankSVM"
    return [
        Claim("Table 4", "soft strategies are faster than hard ones", HARD, hard),
        Claim(
            "Table 4", "random, soft-close, soft-correct: from fast to slow", "see the table", order
        ),
        Claim("Table 4", "soft-correct is faster than ERankSVM", "on 7 of 14 there", rank_svm),
        Claim("section 4.4", text, "; ".join(found), slower),
    ]


def _at_the_papers(results: Results, name: str, who: str) -> str:
    """How far the AUC here at the paper's best gammas is below that at the best ones here."""
    _, best = best_gammas(results, name, who)
    aucs = [
        per_pool(results, name, who, gamma=gamma).mean()
        for gamma in results.settings["gammas"]
        if gamma_name(gamma) in published.GAMMA[name][who][0].split(", ")
    ]
    return f"{name} {max(aucs) - best:+.4f}" if aucs else f"{name} not run"


def _pairs_are_best(results: Results, name: str) -> bool:
    best, _ = best_gammas(results, name, protocol.EXACT)
    return bool({"uniform", 1.0} & set(best))
