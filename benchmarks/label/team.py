"""Many people at one project: double assignments, errors, and time until a label is acknowledged.

scripts/bench label-team [--people 50] [--rate 10] [--minutes 10] [--records 20000]

Each person reads at the same pace, in threads of this process; together they give `rate` labels a
second. A record counts as assigned twice if two people have it in their queues at the same time,
or label it.
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from label_client import Client, label_event
from label_page import Server, made_records, write_table


class Holders:
    """Who has which record in the queue: a record in two queues is counted."""

    def __init__(self):
        self._lock = threading.Lock()
        self._of = {}
        self.twice = 0

    def set(self, person, records):
        with self._lock:
            self._of = {record: who for record, who in self._of.items() if who != person}
            self.twice += sum(record in self._of for record in records)
            self._of.update(dict.fromkeys(records, person))

    def drop(self, record):
        with self._lock:
            self._of.pop(record, None)


class Reader(threading.Thread):
    """A person who labels the first record of the queue, at a pace."""

    def __init__(self, number, link, pause, end, holders):
        super().__init__(daemon=True)
        self.number, self.pause, self.end, self.holders = number, pause, end, holders
        self.client, self.rng = Client(link), random.Random(number)
        self.seconds, self.errors, self.labelled = [], 0, []

    def run(self):
        queue = self.client.get("/api/queue?n=6&have=")["queue"]
        self.holders.set(self.number, queue)
        sleep(self.rng.uniform(0, self.pause))
        while perf_counter() < self.end and queue:
            record = queue[0]
            event = label_event(record, int(self.rng.random() < 0.05))
            begin = perf_counter()
            try:
                reply = self.client.events(event, have=queue, shown=record, n=6)
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                print(error, file=sys.stderr)
                self.errors += 1
                continue
            self.seconds.append(perf_counter() - begin)
            self.errors += len(reply["refused"])
            self.labelled.append(record)
            self.holders.drop(record)
            queue = reply["queue"]
            self.holders.set(self.number, queue)
            sleep(max(0.0, self.rng.uniform(0.5, 1.5) * self.pause - (perf_counter() - begin)))
        self.client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--rate", type=float, default=10.0, help="labels a second of all together")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--records", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), options)))


def measure(folder, options):
    records = made_records(options.records, options.records // 20)
    table = write_table(folder / "made.csv", records)
    server = Server(table, "--team", ",".join(f"Person {k}" for k in range(options.people)))
    holders, end = Holders(), perf_counter() + 60.0 * options.minutes
    pause = options.people / options.rate
    people = [Reader(k, link, pause, end, holders) for k, link in enumerate(server.links)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    server.close()
    seconds = np.array([each for person in people for each in person.seconds])
    labelled = Counter(record for person in people for record in person.labelled)
    return {
        "people": options.people,
        "minutes": options.minutes,
        "labels": int(seconds.size),
        "labels_per_second": round(seconds.size / (60.0 * options.minutes), 2),
        "in_two_queues": holders.twice,
        "labelled_twice": sum(n > 1 for n in labelled.values()),
        "errors": sum(person.errors for person in people),
        "ack_ms_median": round(1000 * float(np.median(seconds)), 1),
        "ack_ms_p95": round(1000 * float(np.quantile(seconds, 0.95)), 1),
        "ack_ms_max": round(1000 * float(seconds.max()), 1),
    }


if __name__ == "__main__":
    main()
