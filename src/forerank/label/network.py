"""The place at which a page is served: its socket, the names of the machine, and certificates."""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = [
    "address_for_others",
    "check_certificate",
    "check_place",
    "is_loopback",
    "listen",
    "names_of",
]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Hosts that stand for all addresses of this machine.
_ALL = ("0.0.0.0", "::", "")
# Addresses of documentations (RFC 5737, RFC 3849), which nobody has: by the route to them the
# system says under which address this machine is known elsewhere. Nothing is sent.
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def check_place(host: str, port: int | None, certfile: Any = None, keyfile: Any = None) -> None:
    """An error where a page cannot be served with these options, before a project is changed."""
    if certfile is not None:
        check_certificate(certfile, keyfile)
    listen(host, port, 0).close()


def check_certificate(certfile: Any, keyfile: Any) -> None:
    """An error unless the files are a certificate and its key."""
    import ssl

    for file in (certfile, keyfile):
        with Path(file).open("rb"):
            pass  # a file that cannot be read is an error with its name
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile)
    except ssl.SSLError as error:
        problem = f"not a certificate and its key as PEM ({error.reason or error})"
        raise ValueError(f"{certfile}, {keyfile}: {problem}") from None


def names_of(host: str) -> list[str]:
    """Names under which a server may be addressed, the one to print first."""
    if host in _LOOPBACK:
        return [host, *(each for each in _LOOPBACK[:2] if each != host)]
    if host not in _ALL:
        return [host]
    names = [socket.getfqdn(), socket.gethostname()]
    with suppress(OSError):
        names += [str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None)]
    found = address_for_others(host)
    return list(dict.fromkeys([*([found] if found else []), *names, *_LOOPBACK[:2]]))


def address_for_others(host: str) -> str | None:
    """The name or address under which other machines reach a server; None where none is found."""
    if host not in _ALL:
        return None if is_loopback(host) else host
    families = [socket.AF_INET6, socket.AF_INET] if host == "::" else [socket.AF_INET]
    for family in families:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((_ELSEWHERE[family], 9))
            found = str(asking.getsockname()[0])
            if not found.startswith("127.") and found not in _ALL and found not in _LOOPBACK:
                return found
    return None


def is_loopback(host: str) -> bool:
    """Whether a server that is bound to this host can be reached from this machine only."""
    return host in _LOOPBACK


def listen(host: str, port: int | None, last: int) -> socket.socket:
    """A listening socket; without a port at the last one, or any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [last, 0] if port is None else [port]
    for number in wanted:
        # With the protocol named, asyncio sends small replies at once (TCP_NODELAY).
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if os.name != "nt":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(128)
        except OSError as error:
            made.close()
            if number != wanted[-1]:
                continue
            place = f"{host}:{number}" if number else host
            problem = (error.strerror or str(error)).lower()
            raise ValueError(f"cannot listen on {place}: {problem}") from None
        return made
    raise ValueError(f"cannot listen on {host}")
