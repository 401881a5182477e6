"""`forerank label`: a page on which people label the records of a file."""

import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from forerank.cli import options
from forerank.cli.terminal import echo

EPILOG = (
    options.examples(
        "forerank label papers.ris",
        "forerank label papers.csv --target-recall 0.9 --confidence 0.95",
        "forerank label papers.ris --team Ada,Ben,Cleo --mode double",
        "forerank label papers.ris --add more.ris  # later; labels are kept",
        "forerank label papers.ris --team Ada,Ben --host lab.example.org "
        "--certfile cert.pem --keyfile key.pem",
    )
    + "Decisions are kept in one file, NAME.forerank-project; the same command opens it again. "
    "Ctrl-C ends the program."
)
# Options by the words with which the library speaks of them.
_OPTIONS = {
    "to it, or choose another project": "--add FILE",
    "choose another project": "--project PATH",
    "make a new project": "--project PATH",
    "needs a team": "--team NAMES",
    "give the smallest relevant grade": "--relevant-from GRADE",
}
_NOT_READ = (
    "the project was made before, and no file was read: --label, --title, --abstract, --encoding "
    "and --delimiter count when a project is made or a file is added"
)
_NO_ADDRESS = (
    "note: no address of this machine was found under which others reach it; pass --host ADDRESS"
)
_UNPROTECTED = (
    "note: without TLS, everyone on the network can read the records, the links and the decisions; "
    "give a certificate and its key"
)


def label(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="RIS, BibTeX (.bib), CSV, TSV, XLSX, JSON lines, Parquet or Feather, by its "
            "suffix; or a project.",
        ),
    ],
    *,
    project: Annotated[
        Path | None, Option(help="The project file. Default: beside FILE, NAME.forerank-project.")
    ] = None,
    add: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Another file of records; may be repeated.")
    ] = None,
    strategy: Annotated[
        str | None,
        Option(help="Which record is next: greedy (default), random, uncertain, lossmin, ..."),
    ] = None,
    target_recall: Annotated[
        float | None, Option(help="The recall at which one may stop. Default: 0.95.")
    ] = None,
    confidence: Annotated[
        float | None, Option(help="The confidence of that recall. Default: 0.95.")
    ] = None,
    team: Annotated[
        str | None,
        Option(metavar="NAMES", help="People who read, separated by commas; the first one owns."),
    ] = None,
    mode: Annotated[
        str | None,
        Option(help="single: each record is read by one person; double: by two, blinded."),
    ] = None,
    labels: Annotated[
        str | None,
        Option(metavar="NAMES", help="Names of the labels, lowest first, separated by commas."),
    ] = None,
    relevant_from: Annotated[
        int | None, Option(min=1, help="The smallest label that is relevant. Default: 1.")
    ] = None,
    label_column: Annotated[
        str | None,
        Option("--label", metavar="COLUMN", help="The column of labels; '' for none."),
    ] = None,
    title: Annotated[str | None, Option(metavar="COLUMN", help="The column of titles.")] = None,
    abstract: Annotated[
        str | None, Option(metavar="COLUMN", help="The column of abstracts.")
    ] = None,
    encoding: Annotated[str | None, Option(help="Of a text file, such as cp1252.")] = None,
    delimiter: Annotated[str | None, Option(help="Of a CSV file. Default: guessed.")] = None,
    seed: Annotated[int | None, Option(min=0, help="Seed of all random numbers.")] = None,
    host: Annotated[
        str, Option(help="Name or address to bind to. Others than this machine need --team.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, Option(min=0, max=65535, help="Default: that of the last time, or a free one.")
    ] = None,
    certfile: Annotated[Path | None, Option(help="Certificate for TLS, as PEM.")] = None,
    keyfile: Annotated[Path | None, Option(help="Key of the certificate, as PEM.")] = None,
    unprotected: Annotated[
        bool, Option("--unprotected", help="Serve other machines without TLS.")
    ] = False,
    no_browser: Annotated[bool, Option("--no-browser", help="Do not open a browser.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Label the records of a file on a page in the browser, the most likely relevant first.

    A ranker learns from each label. The page says how many relevant records may be missing, and
    when one may stop. It is served to this machine only, unless --host says otherwise.
    """
    from forerank.label.launch import project_path
    from forerank.label.network import check_place
    from forerank.label.page import open_page

    people = _names(team)
    _check_network(host, people, certfile, keyfile, unprotected=unprotected)
    tls = {"certfile": certfile, "keyfile": keyfile}
    columns = {"title": title, "abstract": abstract}
    options: dict[str, dict[str, Any]] = {
        "read": {"encoding": encoding, "delimiter": delimiter, "label": label_column},
        "roles": {role: column for role, column in columns.items() if column is not None},
    }
    settings = {
        "strategy": strategy,
        "target": target_recall,
        "confidence": confidence,
        "mode": mode,
        "labels": _names(labels) or None,
        "threshold": relevant_from,
        "seed": seed,
    }
    is_read = bool(add) or not project_path(file, project).exists()
    given = any(value is not None for value in (*options["read"].values(), title, abstract))
    check_place(host, port, **tls)
    opened, notes = _opened(file, project, people, options, settings, add or [])
    if given and not is_read:
        notes.append(_NOT_READ)
    for note in [] if quiet else notes:
        echo(f"note: {_with_options(note)}", err=True)
    with open_page(opened, host=host, port=port, **tls) as page:
        _announce(page, browser=not no_browser, team=bool(people))
        _serve(page)
    if not quiet:
        echo(f"forerank: stopped; everything is saved in {opened.path}", err=True)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _opened(
    file: Path,
    project: Path | None,
    people: list[str],
    options: dict[str, dict[str, Any]],
    settings: dict[str, Any],
    added: list[Path],
) -> tuple[Any, list[str]]:
    """The project with the files that are added, and notes."""
    from forerank.exceptions import ProjectFileError
    from forerank.label.launch import add_file, open_project

    try:
        opened, notes = open_project(file, project, team=people, **options, **settings)
    except ProjectFileError as error:
        raise ValueError(_with_options(str(error))) from None
    try:
        for each in added:
            notes += add_file(opened, each, **options)
    except BaseException:
        opened.close()
        raise
    return opened, notes


def _with_options(text: str) -> str:
    """A sentence of the library with the options of the command that it speaks of."""
    shown = [option for words, option in _OPTIONS.items() if words in text]
    return f"{text} ({', '.join(shown)})" if shown else text


def _check_network(
    host: str, people: list[str], certfile: Any, keyfile: Any, *, unprotected: bool
) -> None:
    """An error where other machines would be served without the protection they need."""
    from forerank.label.network import address_for_others, is_loopback

    if (certfile is None) != (keyfile is None):
        raise ValueError("TLS needs both a certificate and its key: --certfile and --keyfile")
    if is_loopback(host):
        return
    if not people:
        raise ValueError(f"{host} can be reached by others: give --team NAMES, a link for each")
    if certfile is None and not unprotected:
        raise ValueError(
            f"{host} can be reached by others, who could read records, links and decisions on "
            "the way: give --certfile and --keyfile, or accept that with --unprotected"
        )
    if certfile is None:
        echo(_UNPROTECTED, err=True)
    if address_for_others(host) is None:
        echo(_NO_ADDRESS, err=True)


def _announce(page: Any, *, browser: bool, team: bool) -> None:
    """Print the links, and open the first one."""
    for name, link in page.links.items():
        if len(page.links) > 1:
            echo(f"{name}:")
        echo(link)
    sys.stdout.flush()
    if browser:
        import threading
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(page.url,), daemon=True).start()


def _serve(page: Any) -> None:
    """Serve until Ctrl-C or a signal to terminate, which is the usual end."""
    try:
        page.serve()
    except KeyboardInterrupt:
        pass
    except SystemExit as end:
        if end.code not in (130, 143):
            raise
