"""Times of the labelling server: acknowledgement, label to ranking, and opening again.

scripts/bench label-latency [--records 100000] [--labels 60] [--read 200]

A reader labels while the model trains; the time until a ranking knows a label is measured from its
acknowledgement to the first reply whose model was trained on it.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from label_client import Client, label_event
from label_page import Server, write_table

# Words of the made texts, whose frequencies fall as those of a language do (Zipf's law), and words
# of an abstract.
VOCABULARY, LENGTH = 60_000, 150


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--read", type=int, default=200, help="labels before anything is timed")
    parser.add_argument("--labels", type=int, default=60, help="labels that are timed")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between labels")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), options)))


def measure(folder, options):
    table = write_table(folder / "made.csv", made_records(options.records))
    begin = perf_counter()
    server = Server(table)
    made = perf_counter() - begin
    client = Client(server.links[0])
    for found in client.get("/api/search?q=asthma&limit=5")["results"]:  # the first relevant ones
        client.events(label_event(found["id"], 1) | {"screen": "search"})
    queue = client.get("/api/queue?n=20&have=")
    for _ in range(options.read):
        queue = label(client, queue)[1]
    wait_for_model(client, options.read + 5)
    acknowledged = [label(client, queue := label_slowly(client, queue, options))[0]
                    for _ in range(options.labels)]  # fmt: skip
    known = [time_to_ranking(client) for _ in range(options.labels // 2)]
    shown = client.events()["queue"][0]
    client.events(shown=shown)
    client.close()
    server.kill()
    begin = perf_counter()
    server.start()
    client = Client(server.links[0])
    again = client.get("/api/queue?n=20&have=")["queue"][0]
    opened = perf_counter() - begin
    client.close()
    server.close()
    return {
        "records": options.records,
        "make_s": round(made, 2),
        "ack_ms_median": _ms(acknowledged, 0.5),
        "ack_ms_p95": _ms(acknowledged, 0.95),
        "label_to_ranking_s_median": round(float(np.median(known)), 2),
        "label_to_ranking_s_p95": round(float(np.quantile(known, 0.95)), 2),
        "reopen_s": round(opened, 2),
        "same_record": again == shown,
    }


def made_records(n, seed=0):
    """Records of which one in fifty is about asthma."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, VOCABULARY + 1)
    limits = np.cumsum(shares / shares.sum())
    words = np.array([f"word{k}" for k in range(VOCABULARY)])
    for number in range(n):
        drawn = np.minimum(np.searchsorted(limits, rng.random(LENGTH)), VOCABULARY - 1)
        text = words[drawn].tolist()
        topic = "asthma" if number % 50 == 7 else "study"
        yield {
            "title": f"{' '.join(text[:8])} {topic} {number}",
            "abstract": " ".join([*text, topic, topic]),
            "year": str(1990 + number % 35),
            "doi": f"10.1000/made.{number}",
        }


def _ms(seconds, share):
    return round(1000 * float(np.quantile(seconds, share)), 1)


def label(client, reply):
    """Label the first record of the queue; the time until the reply, and the reply."""
    record = reply["queue"][0]
    title = next((each["title"] for each in reply["records"] if each["id"] == record), "")
    event = label_event(record, int("asthma" in title))
    begin = perf_counter()
    reply = client.events(event, shown=reply["queue"][1])
    return perf_counter() - begin, reply


def label_slowly(client, reply, options):
    sleep(options.pause)
    return client.events()


def wait_for_model(client, n_labels):
    begin = perf_counter()
    while (model := client.events(n=1)["model"])["trained_on"] < n_labels:
        if perf_counter() - begin > 200:
            raise RuntimeError(f"the model was not trained: {model}")
        sleep(0.02)
    return perf_counter() - begin


def time_to_ranking(client):
    """Seconds from the acknowledgement of a label to a ranking that knows it."""
    reply = label(client, client.events())[1]
    return wait_for_model(client, reply["model"]["labels"])


if __name__ == "__main__":
    main()
