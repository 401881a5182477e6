"""Projects, services and a client without a network, for tests of `forerank.label`."""

import asyncio
import csv
import itertools
import json
from contextlib import contextmanager

from forerank.label.importing import records_of_frame
from forerank.label.launch import create
from forerank.label.security import Sessions, allowed_hosts
from forerank.label.server import make_app
from forerank.label.service import Service

BASE = "http://127.0.0.1:8000/"
_numbers = itertools.count(1)


def made_frame(n, **columns):
    import pandas as pd

    rows = range(1, n + 1)
    made = {"title": [f"Title {k}" for k in rows], "abstract": [f"abstract of {k}" for k in rows]}
    return pd.DataFrame(made | columns)


def write_csv(path, columns):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def made_project(path, n=12, *, frame=None, team=(), **settings):
    found = records_of_frame(made_frame(n) if frame is None else frame)
    return create(path, found, "made.csv", team=team, settings=settings)[0]


@contextmanager
def service_of(path, n=12, **options):
    service = Service(made_project(path, n, **options))
    try:
        yield service
    finally:
        service.close()


def event(kind, record, value=None, screen="read", uuid=None):
    """An event as the page sends it."""
    number = next(_numbers)
    uuid = f"00000000-0000-{number:08d}" if uuid is None else uuid
    return {
        "uuid": uuid,
        "kind": kind,
        "record": record,
        "value": value,
        "at": 1_700_000_000_000 + 1000 * number,
        "screen": screen,
    }


def send(service, person, *events, **body):
    """The reply to events."""
    body = {"events": list(events), "have": [], "n": 5, **body}
    return service.submit(service.take_events, person, body).result()


def label(service, person, record, value, screen="read"):
    """Label a record; the uuid of the event."""
    made = event("label", record, value, screen)
    reply = send(service, person, made)
    assert reply["refused"] == []
    return made["uuid"]


def ask(service, method, *arguments, **options):
    """The result of a function in the writer's thread."""
    return service.submit(lambda: method(*arguments, **options)).result()


class Response:
    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {}
        for name, value in headers:
            self.headers.setdefault(name.decode().lower(), value.decode())

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """Calls an ASGI application as a browser would."""

    def __init__(self, app):
        self.app = app
        self.headers = {"host": "127.0.0.1:8000"}

    def request(self, method, path, body=b"", headers=None):
        path, _, query = path.partition("?")
        fields = {**self.headers, **(headers or {})}
        pairs = [(k.encode(), v.encode("latin-1")) for k, v in fields.items() if v is not None]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": pairs,
            "client": ("127.0.0.1", 5000),
            "server": ("127.0.0.1", 8000),
        }
        sent, received = [], []

        async def receive():
            if received:
                await asyncio.Event().wait()  # the client stays
            received.append(True)
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        data = b"".join(each.get("body", b"") for each in sent[1:])
        return Response(sent[0]["status"], sent[0]["headers"], data)

    def get(self, path, **headers):
        return self.request("GET", path, headers=_named(headers))

    def post(self, path, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = {
            "content-type": "application/json",
            "content-length": str(len(data)),
            "origin": "http://127.0.0.1:8000",
        }
        return self.request("POST", path, data, fields | _named(headers))

    def sign_in(self, token):
        reply = self.get(f"/?token={token}")
        assert reply.status == 200
        self.headers["cookie"] = reply.headers["set-cookie"].partition(";")[0]
        return reply


def _named(headers):
    return {name.replace("_", "-"): value for name, value in headers.items()}


def make_client(service, person=1):
    """A client of a new application of the service, signed in as a person."""
    sessions = Sessions(service.project)
    hosts = allowed_hosts(["127.0.0.1", "localhost"], 8000, tls=False)
    client = Client(make_app(service, sessions, hosts=hosts, base_url=BASE))
    client.sessions = sessions
    if person is not None:
        client.sign_in(ask(service, sessions.new_link, person))
    return client
