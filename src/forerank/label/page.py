"""A page of an open project: its links, and the server that answers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from forerank.label.network import check_certificate, listen, names_of
from forerank.label.project import Project

__all__ = ["Page", "make_page", "open_page"]

# Seconds until the ranker is started: first the page has the processor for itself.
_TRAINING_DELAY = 1.0


@dataclass
class Page:
    """A served project.

    Attributes
    ----------
    links : dict
        A one-time link for each person, by name.
    service : Service
    """

    links: dict[str, str]
    service: Any
    _server: Any
    _socket: socket.socket
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._timer = threading.Timer(_TRAINING_DELAY, self.service.start_training)
        self._timer.daemon = True

    @property
    def url(self) -> str:
        """The link of the first person."""
        return next(iter(self.links.values()))

    def serve(self) -> None:
        """Answer requests until a signal ends the program (Ctrl-C) or `stop` is called."""
        self._timer.start()
        self._server.run(sockets=[self._socket])

    def serve_in_thread(self) -> None:
        """Answer requests in another thread."""
        self._thread = threading.Thread(target=self.serve, name="server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the server and close the project."""
        self._server.should_exit = True
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()
        if self._thread is not None:
            self._thread.join()
        self._socket.close()
        self.service.close()


@contextmanager
def open_page(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    certfile: Any = None,
    keyfile: Any = None,
) -> Iterator[Page]:
    """A page of an open project, which ends with the context; the caller serves it.

    Parameters
    ----------
    project : Project
        Closed at the end.
    host : str
        Name or address to which the server is bound.
    port : int, optional
        Default: that of the last time if it is free, else any free one. 0 for any free one.
    certfile, keyfile : path, optional
        Certificate and key for TLS.
    """
    page = make_page(project, host=host, port=port, certfile=certfile, keyfile=keyfile)
    try:
        yield page
    finally:
        page.stop()


def make_page(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    certfile: Any = None,
    keyfile: Any = None,
) -> Page:
    """A page of an open project, for which the socket is open already; see `open_page`."""
    try:
        listening = listen(host, port, project.settings()["port"])
    except BaseException:
        project.close()
        raise
    try:
        return _page(project, listening, host, certfile, keyfile)
    except BaseException:
        listening.close()
        project.close()
        raise


def _page(
    project: Project, listening: socket.socket, host: str, certfile: Any, keyfile: Any
) -> Page:
    from forerank.label.security import Sessions, allowed_hosts
    from forerank.label.server import make_app, make_server
    from forerank.label.service import Service

    port, tls = listening.getsockname()[1], certfile is not None
    if tls:
        check_certificate(certfile, keyfile)
    names = names_of(host)
    shown = f"[{names[0]}]" if ":" in names[0] else names[0]
    base = f"{'https' if tls else 'http'}://{shown}:{port}/"
    hosts = allowed_hosts(names, port, tls=tls)
    sessions = Sessions(project)
    with project.transaction():
        project.set("port", port)
        links = {
            each.name: f"{base}?token={sessions.new_link(each.id)}" for each in project.people()
        }
    service = Service(project)
    app = make_app(service, sessions, hosts=hosts, base_url=base, tls=tls)
    options = {"ssl_certfile": certfile, "ssl_keyfile": keyfile} if tls else {}
    return Page(links, service, make_server(app, **options), listening)
