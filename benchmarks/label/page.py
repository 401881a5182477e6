"""Time from a key press to the painted next record, while the model is trained.

python benchmarks/label/page.py [--records 100000] [--presses 300] [--pause 0.2]

Needs an installed Chromium or Chrome. The time begins with the key press as the browser stamps it
and ends after the first frame with the next record has been drawn; frames come 60 times a second.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from label_page import (
    Server,
    is_relevant,
    made_records,
    open_page,
    opened_browser,
    saved,
    title,
    write_table,
)

# A message posted from within a frame is delivered when the frame has been drawn.
_WATCH = """() => {
  window.times = [];
  const heading = () => document.querySelector("#screen h1").textContent;
  window.addEventListener("keydown", (event) => {
    const before = heading();
    const look = () => requestAnimationFrame(() => {
      if (heading() === before) { look(); return; }
      const channel = new MessageChannel();
      channel.port1.onmessage = () => window.times.push(performance.now() - event.timeStamp);
      channel.port2.postMessage(null);
    });
    look();
  }, true);
}"""
_STATE = "() => fetch('api/state').then((reply) => reply.json())"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--presses", type=int, default=300)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between presses")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        made = made_records(options.records, options.records // 50, n_rare=60)
        table = write_table(Path(directory) / "records.csv", made)
        begin = perf_counter()
        server = Server(table)
        print(f"{options.records:,} records imported in {perf_counter() - begin:.1f} s", flush=True)
        try:
            with opened_browser() as browser:
                measure(open_page(browser, server), options.presses, options.pause)
        finally:
            server.close()


def measure(page, n_presses: int, pause: float) -> None:
    page.evaluate(_WATCH)
    before = page.evaluate(_STATE)["model"]["version"]
    n_training = 0
    for number in range(n_presses):
        page.keyboard.press("r" if is_relevant(title(page)) else "i")
        page.wait_for_function("(n) => window.times.length === n", arg=number + 1)
        page.wait_for_timeout(1000 * pause)
        if number % 10 == 9:
            n_training += page.evaluate(_STATE)["model"]["state"] == "training"
    saved(page)
    model = page.evaluate(_STATE)["model"]
    times = np.array(page.evaluate("() => window.times"))
    middle, high, largest = np.percentile(times, [50, 95, 100])
    print(
        f"key press to painted record: p50 {middle:.1f} ms, p95 {high:.1f} ms, "
        f"largest {largest:.1f} ms ({times.size} presses)"
    )
    print(
        f"models trained meanwhile: {model['version'] - before}; "
        f"training at {n_training} of {n_presses // 10} looks"
    )


if __name__ == "__main__":
    main()
