"""Masks of what differs from run to run in texts: durations, dates, versions, digests, directories.

A masked text stays as it is when it is masked again: `compare` masks the texts of a recording, too,
which may be older than a mask.
"""

import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPORARY = re.escape(tempfile.gettempdir())
PACKAGES = "|".join(
    (
        *("forerank", "scikit-learn", "numpy", "scipy", "python", "pandas", "pyarrow", "numba"),
        *("joblib", "skops", "matplotlib", "jinja2", "onnx", "typer", "rich"),
    )
)
MASKS: list[tuple[str, str]] = [
    (r"\r\n", "\n"),
    (rf"{TEMPORARY}/recording-\w+", "<directory>"),
    (re.escape(str(ROOT)), "<directory>"),
    (rf"{TEMPORARY}/\w+", "<directory>"),
    (r"Traceback \(most recent call last\):\n(?:[ ].*\n)+", "<traceback>\n"),
    (r"note: compiling [^\n]*\n", ""),
    (r"\b[0-9a-f]{40,}\n\s+[0-9a-f]+\b", "<digest>"),
    (r"(?<![\w.])(?=[0-9a-f]*[a-f][0-9a-f]*[a-f])[0-9a-f]{12,}(?![\w.-])", "<digest>"),
    (r'("(?:\w+_)?seconds": )\{[^}]*\}', r"\1<seconds>"),
    (r'("(?:\w+_)?(?:seconds|time)": )[-+.\deE]+', r"\1<seconds>"),
    (r"(?<![\w.])\d+(?:\.\d+)? (s|seconds)\b", r"<seconds> \1"),
    (rf"\b({PACKAGES})(\s+)\d+\.[\w.]*\w", r"\1\2<version>"),
    (rf'"({PACKAGES})": "\d+\.[\w.]*"', r'"\1": "<version>"'),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<date>"),
    (r"\S+\.py:\d+: ", "<line>: "),
    (r"\bscores agree to \S+", "scores agree to <difference>"),
]
# Head of a column of durations in a printed table.
DURATION_HEAD = re.compile(r"^(?:m?s|seconds|milliseconds)\b.*\bfit$|^(?:seconds|fit time.*)$")
# Table of methods on a page: its rows, below heads of which the last is Seconds, and a last cell.
PAGE_ROWS = re.compile(r"(?<=>Seconds</th></tr></thead>).*?(?=</table>)", re.DOTALL)
DURATION = r"[-–+.\de]+"


def masked(text: str) -> str:
    """Text with placeholders for what differs from run to run."""
    for pattern, placeholder in MASKS:
        text = re.sub(pattern, placeholder, text)
    return masked_page_text(masked_page(masked_tables(text)))


def masked_tables(text: str) -> str:
    """Text with a dash, at the same width, for the durations in printed tables."""
    lines, columns = [], []
    for line in text.split("\n"):
        if line.startswith("┃"):
            heads = [cell.strip() for cell in line.split("┃")]
            columns = [k for k, head in enumerate(heads) if DURATION_HEAD.match(head)]
        elif line.startswith("│") and columns:
            cells = line.split("│")
            for k in columns:
                cells[k] = "-".center(len(cells[k])) if k < len(cells) else ""
            line = "│".join(cells)
        elif line.startswith("└"):
            columns = []
        lines.append(line)
    return "\n".join(lines)


def masked_page(source: str) -> str:
    """HTML with a dash for the durations in the table of methods."""
    cell = re.compile(rf">{DURATION}</td></tr>")
    return PAGE_ROWS.sub(lambda rows: cell.sub(">-</td></tr>", rows.group()), source)


def masked_page_text(text: str) -> str:
    """Visible text of a page, a line per cell, with a dash for the durations of methods."""
    lines = text.split("\n")
    last = lines.index("Seconds") if "Seconds" in lines else 0
    if "Method" in lines[:last]:
        width = lines[last::-1].index("Method") + 1
        for k in range(last + width, len(lines), width):
            if not re.fullmatch(DURATION, lines[k]):
                break
            lines[k] = "-"
    return "\n".join(lines)
