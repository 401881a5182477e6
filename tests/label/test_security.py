"""Who is answered: every route, with wrong hosts, origins, sites, cookies and tokens."""

import pytest

from forerank.label.server import make_app
from label_service import BASE, ask, event, make_client, service_of

GET = [
    "/", "/static/app.js", "/static/style.css", "/static/icon.svg", "/static/index.html",
    "/api/state", "/api/queue", "/api/records/1", "/api/weights?record=1", "/api/history",
    "/api/search?q=title", "/api/conflicts", "/api/team", "/api/stop", "/api/export/csv",
    "/api/export/xlsx", "/api/export/ris", "/api/export/rest", "/api/export/prisma",
    "/api/export/events",
]  # fmt: skip
POST = {
    "/api/events": {"events": []},
    "/api/leave": {},
    "/api/settings": {"mine": {}},
    "/api/audit": {"on": False},
    "/api/team": {"name": "Eve"},
    "/api/team/link": {"person": 1},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    path = tmp_path_factory.mktemp("project") / "made.forerank-project"
    with service_of(path, 8, team=["Ada", "Ben"]) as made:
        yield made


@pytest.fixture
def client(service):
    return make_client(service)


def calls(client, **headers):
    """All routes with these headers: path and response."""
    for path in GET:
        yield path, client.get(path, **headers)
    for path, body in POST.items():
        yield path, client.post(path, body, **headers)


def test_the_lists_above_have_every_route(service, client):
    paths = {route.path for route in client.app._app.routes}
    listed = {path.partition("?")[0] for path in [*GET, *POST]}
    patterns = {"/static/{name}", "/api/records/{record:int}", "/api/export/{name}"}
    assert paths - patterns <= listed
    assert all(any(each.startswith(p.partition("{")[0]) for each in listed) for p in patterns)


def test_signed_in_people_are_answered_on_every_route(client):
    refused = {path: reply.status for path, reply in calls(client) if reply.status != 200}
    # The name exists after the first test that adds it.
    assert refused == {} or refused == {"/api/team": 400}


HEADERS = {
    "no cookie": {"cookie": None},
    "wrong cookie": {"cookie": "forerank_x=abc"},
    "foreign host": {"host": "evil.example:8000"},
    "no host": {"host": None},
    "host with another port": {"host": "127.0.0.1:8001"},
    "host without a port": {"host": "127.0.0.1"},
    "host that ends the same": {"host": "evil.127.0.0.1:8000"},
}


@pytest.mark.parametrize("name", HEADERS)
def test_refused_on_every_route(client, name):
    for path, reply in calls(client, **HEADERS[name]):
        assert reply.status == 403, path
        assert b"Title" not in reply.body


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_of_other_sites_are_refused(client, site):
    for path, reply in calls(client, sec_fetch_site=site, sec_fetch_mode="cors"):
        assert reply.status == 403, path
    for path, reply in calls(client, sec_fetch_site=site, sec_fetch_mode="navigate"):
        assert (reply.status == 200) == (path == "/"), path


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://127.0.0.1:8001", "https://127.0.0.1:8000", "null", ""],
)
def test_writes_of_other_origins_are_refused(client, origin):
    for path, body in POST.items():
        assert client.post(path, body, origin=origin).status == 403, path
        assert client.post(path, body, origin=None).status == 403, path


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", None])
def test_writes_are_json_only(client, kind):
    for path, body in POST.items():
        assert client.post(path, body, content_type=kind).status == 415, path


def test_other_methods_and_missing_routes(client):
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
        assert client.request(method, "/api/state").status == 405
    for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static/", "/api/records/99",
                 "/api/records/-1", "/api/export/passwd", "/static/nothing.js"):  # fmt: skip
        assert client.get(path).status == 404, path
    assert client.get("/api/events").status == 405  # a write is not made by a link


def test_every_response_has_the_headers(client):
    replies = [reply for _, reply in calls(client)]
    replies += [reply for _, reply in calls(client, cookie=None)]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in reply.headers


def test_no_page_has_inline_scripts_or_foreign_addresses(client):
    page = client.get("/").body.decode()
    assert "<script>" not in page
    assert " on" not in page.replace(" one", "")  # no handlers in attributes
    assert "http" not in page.replace("http-equiv", "")


def test_a_link_is_opened_once_and_gives_a_cookie_that_scripts_and_sites_cannot_use(service):
    client = make_client(service, None)
    token = ask(service, client.sessions.new_link, 1)
    assert client.get("/?token=wrong").status == 403
    assert client.request("HEAD", f"/?token={token}").status == 403  # a preview does not open it
    assert client.get(f"/?token={token}", sec_purpose="prefetch").status == 403
    reply = client.sign_in(token)
    cookie = reply.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert client.get("/api/state").status == 200
    assert client.get(f"/?token={token}", cookie=None).status == 403
    again = client.get(f"/?token={token}")  # a browser with the cookie goes on to the page
    assert (again.status, again.body) == (200, reply.body)
    assert "set-cookie" not in again.headers
    assert (
        client.get("/api/state", cookie=f"forerank_{service.settings['id']}={token}").status == 403
    )


def test_secrets_are_not_stored(service):
    client = make_client(service)
    secret = client.headers["cookie"].partition("=")[2]
    token = ask(service, client.sessions.new_link, 2)
    ask(service, service.project.set, "port", 1)
    data = service.project.path.read_bytes()
    data += service.project.path.with_name(service.project.path.name + "-wal").read_bytes()
    assert secret.encode() not in data
    assert token.encode() not in data


def test_a_cookie_has_the_flag_secure_with_tls(service, client):
    app = make_app(service, client.sessions, hosts={"127.0.0.1:8000"}, base_url=BASE, tls=True)
    client.app = app
    token = ask(service, client.sessions.new_link, 1)
    assert "; Secure" in client.get(f"/?token={token}").headers["set-cookie"]
    assert client.post("/api/leave", {}).status == 403  # the origin is https
    assert client.post("/api/leave", {}, origin="https://127.0.0.1:8000").status == 200


def test_readers_do_not_do_what_is_the_owners(service):
    reader = make_client(service, 2)
    assert reader.post("/api/audit", {"on": True}).status == 403
    assert reader.post("/api/team", {"name": "Fay"}).status == 403
    assert reader.post("/api/team/link", {"person": 1}).status == 403


def test_a_new_link_signs_the_person_in(service, client):
    reply = client.post("/api/team/link", {"person": 2})
    assert reply.json["name"] == "Ben"
    other = make_client(service, None)
    other.sign_in(reply.json["link"].partition("token=")[2])
    assert reply.json["link"].startswith(BASE)


def test_events_of_a_page_of_another_person_are_refused(client):
    body = {"events": [event("label", 1, 1)], "person": 2}
    assert client.post("/api/events", body).status == 403


BODIES = {
    "no JSON": b"{",
    "not UTF-8": b'{"a": "\xff"}',
    "a list": b"[]",
    "a constant": b'{"events": [], "n": NaN}',
    "deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "long number": b'{"n": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_are_no_object(client, name):
    assert client.post("/api/events", BODIES[name]).status == 400


def test_large_bodies_are_refused(client):
    body = b'{"a": "' + b"x" * 5_000_000 + b'"}'
    assert client.post("/api/events", body).status == 413
    assert client.post("/api/events", body, content_length="10").status == 413
    assert client.post("/api/events", b"{}", content_length="-1").status == 413


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"events": 5},
        {"events": [5]},
        {"events": [{}]},
        {"events": [{"uuid": "x" * 10}]},
        {"events": [event("label", 1, 1) | {"uuid": "short"}]},
        {"events": [event("label", 1, 1) | {"uuid": "a'; DROP--\x00"}]},
        {"events": [event("label", 1, 1) | {"at": "now"}]},
        {"events": [event("label", 1, 1) | {"at": -5}]},
        {"events": [event("label", 1, 1) | {"at": 1e300}]},
        {"events": [event("label", 10**30, 1)]},
        {"events": [event("label", "1", 1)]},
        {"events": [event("note", 1, "x" * 200_000)]},
        {"events": [event("label", 1, 1)], "n": "many"},
        {"events": [event("label", 1, 1)], "have": [[]]},
        {"events": [event("skip", 1)] * 2000},
    ],
)
def test_a_request_that_is_refused_changes_nothing(service, client, body):
    before = ask(service, lambda: (service.decisions.n_events, service.counts(1)))
    assert client.post("/api/events", body).status == 400
    assert ask(service, lambda: (service.decisions.n_events, service.counts(1))) == before


@pytest.mark.parametrize(
    "made",
    [
        event("label", 0, 1), event("label", 99, 1), event("label", 1, 2), event("label", 1, True),
        event("label", 1, -1), event("label", 1, "1"), event("label", None, 1),
        event("resolve", 1, 1), event("note", 1, 5), event("tags", 1, "x"), event("tags", 1, [1]),
        event("retract", 1, "unknown-uuid"), event("retract", 1, None), event("hack", 1, 1),
    ],
)  # fmt: skip
def test_events_that_make_no_sense_are_refused_one_by_one(service, client, made):
    good = event("note", 2, "fine")
    reply = client.post("/api/events", {"events": [made, good]}).json
    assert [each["uuid"] for each in reply["refused"]] == [made["uuid"]]
    assert reply["accepted"] == [good["uuid"]]
