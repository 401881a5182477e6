"""The server: routes of the page as an ASGI application, and the thread or process it runs in."""

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from forerank.data.files import first_line
from forerank.label import downloads, panel, views
from forerank.label.security import Guard, Sessions
from forerank.label.service import Service
from forerank.label.writer import Refusal

__all__ = ["make_app", "make_server"]

_STATIC = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Largest body of a request, in bytes: many times that of a full outbox with its notes. A larger
# one is refused, and the page sends its events one by one.
_LARGEST_BODY = 4_000_000
# Longest wait for the rest of a body, in seconds.
_PATIENCE = 30.0
# Most lines of a list in one reply.
_MOST_LINES = 1000
# Bytes of a download that are sent at a time.
_CHUNK = 1 << 18
# Seconds that a connection stays open between requests; readers pause for longer than the usual 5.
_KEEP_ALIVE = 75
# Seconds that open requests have when the server ends.
_GRACE = 2


def make_app(
    service: Service, sessions: Sessions, *, hosts: set[str], base_url: str, tls: bool = False
) -> Guard:
    """The application of a project.

    Parameters
    ----------
    service : Service
    sessions : Sessions
    hosts : set of str
        Accepted values of the header Host.
    base_url : str
        Address of the page, with which links begin.
    tls : bool
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    api = _Api(service, sessions, base_url)
    get = {
        "/": api.index,
        "/static/{name}": api.static,
        "/api/state": api.state,
        "/api/queue": api.queue,
        "/api/records/{record:int}": api.record,
        "/api/weights": api.weights,
        "/api/history": api.history,
        "/api/search": api.search,
        "/api/conflicts": api.conflicts,
        "/api/team": api.team,
        "/api/stop": api.stop,
        "/api/export/{name}": api.export,
    }
    post = {
        "/api/events": api.events,
        "/api/leave": api.leave,
        "/api/settings": api.settings,
        "/api/audit": api.audit,
        "/api/team": api.add_person,
        "/api/team/link": api.new_link,
    }
    routes = [Route(path, _answered(handler), methods=["GET"]) for path, handler in get.items()]
    routes += [Route(path, _answered(handler), methods=["POST"]) for path, handler in post.items()]

    async def open_link(token: str) -> str | None:
        return await api.run(sessions.open_link, token)

    cookie = f"forerank_{service.settings['id']}"
    app = Starlette(routes=routes)
    return Guard(app, sessions, open_link, hosts=hosts, cookie=cookie, tls=tls)


def make_server(app: Guard, **options: Any) -> Any:
    """A uvicorn server of an application that writes no log; `options` such as ssl_certfile."""
    import uvicorn

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=_KEEP_ALIVE,
        **options,
    )
    return uvicorn.Server(config)


def _answered(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A handler whose result becomes a response, and whose errors become one line of JSON."""

    async def answer(request: Any) -> Any:
        try:
            result = await handler(request)
        except Refusal as refusal:
            return _reply({"error": str(refusal)}, refusal.status)
        except Exception as error:  # such as a full disk: the page keeps its events and tries again
            return _reply({"error": f"the server failed: {first_line(error)}"}, 500)
        return _reply(result) if isinstance(result, dict) else result

    return answer


def _reply(value: dict[str, Any], status: int = 200) -> Any:
    from starlette.responses import Response

    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


async def _body(request: Any) -> dict[str, Any]:
    """The JSON object of a request, of limited size."""
    too_large = Refusal(f"the request has more than {_LARGEST_BODY:,} bytes", 413)
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length[:12]) > _LARGEST_BODY:
        raise too_large
    data = bytearray()
    try:
        async with asyncio.timeout(_PATIENCE):
            async for part in request.stream():
                data += part
                if len(data) > _LARGEST_BODY:
                    raise too_large
    except TimeoutError:
        raise Refusal("the request did not end", 408) from None
    try:
        value = _parsed(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refusal("the request is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise Refusal("the request must be a JSON object")
    return value


def _parsed(text: str) -> Any:
    """The value of a JSON text, without lone surrogates, which cannot be stored, and numbers that
    JSON does not have.
    """

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    value = json.loads(text, parse_constant=refuse)
    if "\\ud" in text.lower():
        plain = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(plain)
    return value


def _number(request: Any, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, "") or str(default)
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise Refusal(f"{name} must be a number")
    return min(int(text), most)


class _Api:
    """Handlers of the routes; each returns an object for JSON, or a response."""

    def __init__(self, service: Service, sessions: Sessions, base_url: str) -> None:
        self._service, self._sessions, self._base_url = service, sessions, base_url
        self._files = {path.name: path.read_bytes() for path in _STATIC.iterdir() if path.is_file()}

    async def run(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result of a method in the writer's thread."""
        future = self._service.submit(partial(method, *arguments, **options))
        return await asyncio.wrap_future(future)

    def _person(self, request: Any) -> int:
        person = request.scope["state"]["person"]
        self._service.seen(person)
        return person

    # --- Files of the page ---

    async def index(self, request: Any) -> Any:
        return self._file("index.html")

    async def static(self, request: Any) -> Any:
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Any:
        from starlette.responses import Response

        if name not in self._files or Path(name).suffix not in _MEDIA_TYPES:
            raise Refusal("there is no such file", 404)
        kind = _MEDIA_TYPES[Path(name).suffix]
        return Response(self._files[name], headers={"content-type": kind})

    # --- Reading ---

    async def state(self, request: Any) -> dict[str, Any]:
        return await self.run(self._service.state, self._person(request))

    async def queue(self, request: Any) -> dict[str, Any]:
        person, n = self._person(request), _number(request, "n", 20, 100)
        have = re.findall(r"[0-9]{1,9}", request.query_params.get("have", ""))
        return await self.run(self._service.queue, person, n, list(map(int, have)))

    async def record(self, request: Any) -> dict[str, Any]:
        record, person = request.path_params["record"], self._person(request)
        if not 1 <= record <= self._service.decisions.n_records:
            raise Refusal(f"there is no record {record}", 404)
        (found,) = await self.run(views.records, self._service, [record], person)
        return found

    async def weights(self, request: Any) -> dict[str, Any]:
        self._person(request)
        record = _number(request, "record", 0, 10**9)
        return {"words": await self.run(views.weights, self._service, record)}

    async def history(self, request: Any) -> dict[str, Any]:
        person, query = self._person(request), request.query_params.get("q", "")
        options = {
            "status": request.query_params.get("status", ""),
            "among": await asyncio.to_thread(self._read, views.matching_titles, query),
            "offset": _number(request, "offset", 0, 10**9),
            "limit": _number(request, "limit", 50, _MOST_LINES),
        }
        return await self.run(views.history, self._service, person, **options)

    async def search(self, request: Any) -> dict[str, Any]:
        person, query = self._person(request), request.query_params.get("q", "")
        status = request.query_params.get("status", "")
        if status not in ("", *views.STATES):
            raise Refusal(f"there is no state {status!r}")
        found = await asyncio.to_thread(self._read, views.matching_records, query)
        offset, limit = _number(request, "offset", 0, 10**9), _number(request, "limit", 50, 1000)
        return await self.run(
            views.search, self._service, person, found, status=status, offset=offset, limit=limit
        )

    def _read(self, view: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a view with a connection of its own, outside of the writer's thread."""
        with closing(self._service.project.reader()) as db:
            return view(db, *arguments)

    async def conflicts(self, request: Any) -> dict[str, Any]:
        person = self._person(request)
        return {"conflicts": await self.run(views.conflicts, self._service, person)}

    async def team(self, request: Any) -> dict[str, Any]:
        return await self.run(views.team, self._service, self._person(request))

    async def stop(self, request: Any) -> dict[str, Any]:
        taken = await self.run(panel.snapshot, self._service, self._person(request))
        return await asyncio.to_thread(panel.report, taken)

    async def export(self, request: Any) -> Any:
        from starlette.responses import StreamingResponse

        name, person = request.path_params["name"], self._person(request)
        if name not in downloads.FILES:
            raise Refusal("there is no such file", 404)
        taken = await self.run(downloads.snapshot, self._service, person, name)
        file = await asyncio.to_thread(self._download, taken, name)
        ending, kind = downloads.FILES[name]
        stem = re.sub(r"[^0-9A-Za-z._-]+", "-", self._service.settings["name"]).strip("-.")
        filename = f"{stem[:80] or 'project'}-{ending}"
        headers = {
            "content-type": kind,
            "content-disposition": f'attachment; filename="{filename}"',
        }
        return StreamingResponse(_parts(file), headers=headers)

    def _download(self, taken: downloads.Snapshot, name: str) -> BinaryIO:
        """The contents of a download, in a temporary file if they are large."""
        file: Any = tempfile.SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115
        try:
            self._read(lambda db: downloads.write(taken, name, db, file))
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    # --- Writing ---

    async def events(self, request: Any) -> dict[str, Any]:
        person, body = self._person(request), await _body(request)
        if body.get("person", person) != person:
            raise Refusal("another person is signed in in this browser", 403)
        return await self.run(self._service.take_events, person, body)

    async def leave(self, request: Any) -> dict[str, Any]:
        person = self._person(request)
        await _body(request)
        await self.run(self._service.leave, person)
        return {}

    async def settings(self, request: Any) -> dict[str, Any]:
        person, body = self._person(request), await _body(request)
        return await self.run(self._service.set_settings, person, body)

    async def audit(self, request: Any) -> dict[str, Any]:
        person, body = self._person(request), await _body(request)
        if not isinstance(body.get("on"), bool):
            raise Refusal("'on' must be true or false")
        await asyncio.to_thread(_import_stopping)  # not in the writer's thread: it takes a second
        return await self.run(self._service.set_audit, person, body["on"])

    async def add_person(self, request: Any) -> dict[str, Any]:
        person, body = self._person(request), await _body(request)
        return await self.run(self._add_person, person, body.get("name"))

    def _add_person(self, owner: int, name: Any) -> dict[str, Any]:
        self._service.require_owner(owner)
        if not self._service.settings["team"]:
            raise Refusal("this project has one reader; open it for a team to add people")
        return self._link(self._service.add_person(name))

    async def new_link(self, request: Any) -> dict[str, Any]:
        person, body = self._person(request), await _body(request)
        return await self.run(self._new_link, person, body.get("person"))

    def _new_link(self, owner: int, person: Any) -> dict[str, Any]:
        self._service.require_owner(owner)
        if not isinstance(person, int) or person not in self._service.people:
            raise Refusal("there is no such person", 404)
        return self._link(person)

    def _link(self, person: int) -> dict[str, Any]:
        link = f"{self._base_url}?token={self._sessions.new_link(person)}"
        return {"name": self._service.name_of(person), "link": link}


def _import_stopping() -> None:
    import forerank.active.stopping  # noqa: F401


async def _parts(file: BinaryIO) -> AsyncIterator[bytes]:
    with closing(file):
        while part := await asyncio.to_thread(file.read, _CHUNK):
            yield part
