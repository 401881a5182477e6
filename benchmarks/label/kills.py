"""Kill the server of the labelling page under load: acknowledged labels lost, labels invented.

scripts/bench label-kills [--times 1000] [--records 2000] [--people 4]

People label as fast as they are answered; the server is killed (SIGKILL) after a random time and
started again. Each person's unanswered event is sent again, as the page does.
"""

import argparse
import http.client
import json
import random
import signal
import sqlite3
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from label_client import Client, label_event
from label_page import Server, made_records, write_table

# Longest time between the start of the server and its end, in seconds.
LIFE = 0.4


class Reader(threading.Thread):
    """A person who labels random records and notes what was acknowledged."""

    def __init__(self, client, n_records, seed):
        super().__init__(daemon=True)
        self.client, self.n_records, self.rng = client, n_records, random.Random(seed)
        self.sent, self.acknowledged, self.again = {}, set(), None
        self.alive, self.ended = threading.Event(), False

    def run(self):
        while not self.ended:
            self.alive.wait()
            event = self.again or label_event(
                self.rng.randint(1, self.n_records), self.rng.randint(0, 1)
            )
            self.again = event
            self.sent[event["uuid"]] = (event["record"], event["value"])
            try:
                self.acknowledged |= set(self.client.events(event, n=1)["accepted"])
                self.again = None
            except (OSError, http.client.HTTPException):
                self.alive.clear()
        self.client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--people", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), options)))


def measure(folder, options):
    records = made_records(options.records, options.records // 20, n_sentences=1)
    table = write_table(folder / "made.csv", records)
    names = ",".join(f"Person {k}" for k in range(options.people))
    server = Server(table, "--team", names)
    people = [Reader(Client(link), options.records, k) for k, link in enumerate(server.links)]
    for person in people:
        person.start()
    rng, begin, kills = random.Random(0), perf_counter(), 0
    while kills < options.times and perf_counter() - begin < options.seconds:
        for person in people:
            person.alive.set()
        threading.Event().wait(rng.uniform(0.02, LIFE))
        server.process.send_signal(signal.SIGKILL)
        server.kill()
        kills += 1
        server.start()
        if sys.stderr.isatty():
            print(f"\r{kills} kills", end="", file=sys.stderr)
    for person in people:
        person.ended = True
        person.alive.set()
    for person in people:
        person.join()
    server.close()
    return summary(folder, people, kills, perf_counter() - begin)


def summary(folder, people, kills, seconds):
    db = sqlite3.connect(folder / "made.forerank-project")
    rows = db.execute("SELECT uuid, record, value FROM event").fetchall()
    (check,) = db.execute("PRAGMA integrity_check").fetchone()
    db.close()
    stored = {uuid: (record, int(value)) for uuid, record, value in rows}
    sent = {uuid: event for person in people for uuid, event in person.sent.items()}
    acknowledged = {uuid for person in people for uuid in person.acknowledged}
    return {
        "kills": kills,
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - stored.keys()),
        "invented": sum(sent.get(uuid) != event for uuid, event in stored.items()),
        "stored": len(stored),
        "database": check,
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()
