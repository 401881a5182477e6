"""A client of a running `forerank label`, for tests and benchmarks."""

import http.client
import json
import time
import uuid
from urllib.parse import urlsplit


class Client:
    """A person at a page, without the page: opens a link, then labels."""

    def __init__(self, link, timeout=30):
        parts = urlsplit(link)
        self.address, self.timeout = parts.netloc, timeout
        self.connection = None
        self.cookie = None
        headers, _ = self._call("GET", f"/?{parts.query}")
        self.cookie = headers["set-cookie"].partition(";")[0]

    def _call(self, method, path, body=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address, timeout=self.timeout)
        headers = {"Origin": f"http://{self.address}", "Content-Type": "application/json"}
        if self.cookie is not None:
            headers["Cookie"] = self.cookie
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:200]!r}")
        return response.headers, data

    def get(self, path):
        return json.loads(self._call("GET", path)[1])

    def post(self, path, body):
        return json.loads(self._call("POST", path, json.dumps(body).encode())[1])

    def events(self, *events, **body):
        return self.post("/api/events", {"events": list(events), "have": [], "n": 20, **body})

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def label_event(record, value):
    """A label as the page sends it."""
    return {
        "uuid": str(uuid.uuid4()),
        "kind": "label",
        "record": record,
        "value": value,
        "at": round(1000 * time.time()),
        "screen": "read",
    }
