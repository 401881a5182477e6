"""Who may ask the server for what: the exact host, one-time links, cookies, and origins.

A link has a token that is used up by opening it; the browser then has a cookie that scripts cannot
read and that other sites cannot send. Only hashes of tokens and cookies are stored. Every response
has headers that keep the page to its own scripts.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from forerank.label.project import Project

__all__ = ["Guard", "Sessions", "allowed_hosts"]

# Days after which a cookie ends, in the browser and in the project.
_COOKIE_DAYS = 30
_SECONDS_PER_DAY = 86_400
_HEADERS = (
    (b"content-security-policy",
     b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     b"object-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)  # fmt: skip
# The page that a link opens. It goes on to the project by itself: a cookie that other sites cannot
# send would be left out if the link, clicked in a mail, were redirected.
_OPENED = (
    b'<!doctype html><html lang="en"><meta charset="utf-8">'
    b'<meta http-equiv="refresh" content="0; url=/"><title>forerank</title>'
    b'<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
    b'<p><a href="/">Open the project</a></p>'
)
_REFUSED = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><title>forerank</title>'
    b"<h1>This page needs its link</h1><p>The session has ended, or the link was opened before. "
    b"Start the program again, which prints a new link, or ask the owner of the project.</p>"
)
# The same for a link; a browser sends no cookie with a link in a mail, but with this one.
_USED = _REFUSED + b'<p>This browser opened it before? <a href="/">Open the project</a></p>'

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


def allowed_hosts(names: Iterable[str], port: int, *, tls: bool) -> set[str]:
    """Values of the header Host that are accepted: names with the port, which may be left out if
    it is that of the protocol.

    Examples
    --------
    >>> sorted(allowed_hosts(["127.0.0.1", "::1"], 8000, tls=False))
    ['127.0.0.1:8000', '[::1]:8000']
    """
    shown = [f"[{name}]" if ":" in name else name.lower() for name in names]
    hosts = {f"{name}:{port}" for name in shown}
    return hosts | set(shown) if port == (443 if tls else 80) else hosts


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class Sessions:
    """Links and cookies of a project.

    Methods other than `person` run in the writer's thread.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        since = time.time() - _COOKIE_DAYS * _SECONDS_PER_DAY
        self._cookies = project.sessions("cookie", since)

    def new_link(self, person: int) -> str:
        """The token of a new link of a person; earlier links that were not opened end."""
        token = secrets.token_urlsafe(32)
        self._project.remove_links(person)
        self._project.add_session(_digest(token), person, "link")
        return token

    def open_link(self, token: str) -> str | None:
        """A cookie for the token of a link, which is used up; None if there is no such link."""
        digest = _digest(token)
        person = self._project.session(digest, "link")
        if person is None:
            return None
        cookie = secrets.token_urlsafe(32)
        self._project.remove_session(digest)
        self._project.add_session(_digest(cookie), person, "cookie")
        self._cookies[_digest(cookie)] = person
        return cookie

    def person(self, cookie: str | None) -> int | None:
        """The person with this cookie, or None."""
        return None if cookie is None else self._cookies.get(_digest(cookie))


class Guard:
    """ASGI application around another one: passes on what is allowed, with "person" in the state.

    Parameters
    ----------
    app : ASGI application
    sessions : Sessions
    open_link : async callable
        From the token of a link to a cookie or None; `Sessions.open_link` in its thread.
    hosts : set of str
        See `allowed_hosts`.
    cookie : str
        Name of the cookie. It contains that of the project, since ports share cookies.
    tls : bool
    """

    def __init__(
        self,
        app: Any,
        sessions: Sessions,
        open_link: Callable[[str], Awaitable[str | None]],
        *,
        hosts: set[str],
        cookie: str,
        tls: bool,
    ) -> None:
        self._app, self._sessions, self._open_link = app, sessions, open_link
        self._hosts, self._cookie, self._tls = hosts, cookie, tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        headers = _Headers(scope["headers"])
        problem = self._problem(scope, headers)
        if problem is not None:
            await _answer(send_guarded, *problem)
            return
        person = self._sessions.person(headers.cookie(self._cookie))
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] == "/" and scope["method"] == "GET" and token:
            await self._open(token[0], person, send_guarded)
            return
        if person is None:
            is_page = scope["path"] == "/"
            await _answer(send_guarded, 403, _REFUSED if is_page else "this page needs its link")
            return
        scope.setdefault("state", {})["person"] = person
        await self._app(scope, receive, send_guarded)

    def _problem(self, scope: Scope, headers: "_Headers") -> tuple[int, str] | None:
        """Status and reason of a request that nobody may make, or None."""
        if len(headers.all("host")) != 1 or headers.one("host").lower() not in self._hosts:
            return 403, "unknown host"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "only GET, HEAD and POST are answered"
        if "prefetch" in headers.one("sec-purpose") + headers.one("purpose"):
            return 403, "links are not opened in advance"
        site = headers.one("sec-fetch-site")
        is_page = scope["path"] == "/" and scope["method"] == "GET"
        is_visit = is_page and headers.one("sec-fetch-mode") in ("", "navigate")
        if site not in ("", "same-origin", "none") and not is_visit:
            return 403, "requests from other sites are refused"
        if scope["method"] == "POST":
            return self._problem_of_write(headers, site)
        return None

    def _problem_of_write(self, headers: "_Headers", site: str) -> tuple[int, str] | None:
        scheme = "https" if self._tls else "http"
        origins = {f"{scheme}://{host}" for host in self._hosts}
        origin = headers.one("origin")
        if origin not in origins and not (origin == "" and site == "same-origin"):
            return 403, "requests from other origins are refused"
        kind = headers.one("content-type").partition(";")[0].strip().lower()
        if kind != "application/json":
            return 415, "the content type must be application/json"
        return None

    async def _open(self, token: str, person: int | None, send: Send) -> None:
        cookie = await self._open_link(token)
        if cookie is None:  # the link was used, perhaps by this browser
            status, page = (403, _USED) if person is None else (200, _OPENED)
            await _answer(send, status, page)
            return
        age = _COOKIE_DAYS * _SECONDS_PER_DAY
        value = f"{self._cookie}={cookie}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict"
        value += "; Secure" if self._tls else ""
        await _answer(send, 200, _OPENED, {"set-cookie": value})


class _Headers:
    """Headers of a request."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._pairs = [(name.decode("latin-1").lower(), value) for name, value in pairs]

    def all(self, name: str) -> list[str]:
        return [value.decode("latin-1") for each, value in self._pairs if each == name]

    def one(self, name: str) -> str:
        """The value of a header, "" where it is missing; several are joined."""
        return ", ".join(self.all(name))

    def cookie(self, name: str) -> str | None:
        parts = (part.strip().partition("=") for part in "; ".join(self.all("cookie")).split(";"))
        return next((value for key, _, value in parts if key == name), None)


async def _answer(
    send: Send, status: int, body: str | bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Send a page (bytes) or an error as JSON."""
    is_page = isinstance(body, bytes)
    data = body if isinstance(body, bytes) else json.dumps({"error": body}).encode()
    kind = "text/html; charset=utf-8" if is_page else "application/json"
    fields = {"content-type": kind, "content-length": str(len(data)), **(headers or {})}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": data})
