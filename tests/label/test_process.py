"""`forerank label` as a process: kills, signals, two servers, TLS, exit codes."""

import http.client
import os
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from label_client import Client, label_event
from label_page import Server, made_records, write_table

KILLS = 20


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "made.csv", made_records(400, 40, n_sentences=1))


def run(*arguments, **options):
    command = [sys.executable, "-m", "forerank", "label", *map(str, arguments), "--no-browser"]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, **options
    )


def stored_events(table):
    path = table.with_name("made.forerank-project")
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT uuid, record, value FROM event WHERE kind = 'label'").fetchall()
    db.close()
    return {uuid: (record, int(value)) for uuid, record, value in rows}


def test_labels_that_were_acknowledged_survive_kills(table):
    rng = np.random.default_rng(0)
    sent, acknowledged = {}, set()
    server = Server(table)
    client = Client(server.links[0])
    for _ in range(KILLS):
        killer = threading.Timer(
            rng.uniform(0.01, 0.3), server.process.send_signal, [signal.SIGKILL]
        )
        killer.start()
        try:
            while True:
                event = label_event(int(rng.integers(1, 401)), int(rng.integers(2)))
                sent[event["uuid"]] = (event["record"], event["value"])
                acknowledged |= set(client.events(event)["accepted"])
        except (OSError, http.client.HTTPException):
            killer.join()
            server.kill()
        server.start()  # the cookie is still good
        assert client.get("/api/state")["person"]["id"] == 1
    client.close()
    server.close()
    stored = stored_events(table)
    assert acknowledged <= stored.keys(), "a label was lost"
    assert stored.items() <= sent.items(), "a label was invented"
    assert len(acknowledged) > KILLS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_program_cleanly(table, number):
    server = Server(table)
    with closing(Client(server.links[0])) as client:
        client.events(label_event(1, 1))
    server.process.send_signal(number)
    assert server.process.wait(20) == 0
    server.close()
    assert "everything is saved" in server.log.read_text()
    names = {path.name for path in table.parent.iterdir()}
    assert names == {
        "made.csv",
        "made.forerank-project",
        "made.forerank-project-lock",
        "server.log",
    }


def test_a_second_server_of_a_project_is_refused_in_one_line(table):
    server = Server(table)
    second = run(table)
    server.close()
    assert second.returncode == 2
    assert second.stdout == ""
    assert re.fullmatch(r"forerank: .*open in another program.*\n", second.stderr)


def test_the_link_is_a_line_of_its_own_and_the_port_stays(table):
    command = [sys.executable, "-m", "forerank", "label", str(table), "--no-browser"]
    ports = []
    for _ in range(2):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = process.stdout.readline()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{40,}\n", line)
        ports.append(match[1])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert ports[0] == ports[1]


def test_one_link_for_each_person(table):
    server = Server(table, "--team", "Ada,Ben", "--mode", "double")
    names = []
    for link in server.links:
        with closing(Client(link)) as client:
            names.append(client.get("/api/state")["person"]["name"])
    server.close()
    assert names == ["Ada", "Ben"]


def test_the_worker_ends_with_a_killed_server(table):
    server = Server(table)
    group = subprocess.run(
        ["ps", "--ppid", str(server.process.pid), "-o", "pid="],
        capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    server.kill()
    for _ in range(500):
        if not any(os.path.exists(f"/proc/{number}") for number in group):
            break
        time.sleep(0.02)
    else:
        raise AssertionError("a process of the server is left")
    server.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "--team"),
        (["--host", "0.0.0.0", "--team", "A,B"], "--certfile and --keyfile"),
        (["--certfile", "cert.pem"], "both a certificate and its key"),
        (["--mode", "triple"], "single or double"),
        (["--strategy", "best"], "there is no strategy"),
        (["--target-recall", "1.5"], "between 0 and 1"),
        (["--label", "nothing"], "nothing"),
        (["--title", "nothing"], "nothing"),
    ],
)
def test_options_that_cannot_be_are_one_line(table, arguments, message):
    result = run(table, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path.name for path in table.parent.iterdir()} == {"made.csv"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--certfile", "none.pem", "--keyfile", "none.pem"], "none.pem"),
        (["--host", "192.0.2.1", "--team", "A,B", "--unprotected", "--quiet"], "cannot listen on"),
    ],
)
def test_a_start_that_fails_leaves_no_project(table, arguments, message):
    result = run(table, *arguments)
    assert result.returncode == 2
    assert message in result.stderr.splitlines()[-1]
    assert {path.name for path in table.parent.iterdir()} == {"made.csv"}


def test_options_of_columns_and_names_of_options(table, tmp_path):
    server = Server(table)
    server.close()
    server = Server(table, "--title", "abstract")
    server.close()
    assert "count when a project is made or a file is added" in server.log.read_text()
    other = write_table(tmp_path / "other.csv", made_records(5, 1, n_sentences=1))
    result = run(other, "--project", table.with_name("made.forerank-project"))
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "(--add FILE, --project PATH)" in result.stderr
    graded = tmp_path / "graded.csv"
    graded.write_text("title,included\nOne thing,31\nAnother thing,perhaps so\n")
    assert "--label COLUMN, or '' for none" in run(graded).stderr


def test_a_missing_file_is_one_line(tmp_path):
    result = run(tmp_path / "none.csv")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1


def test_tls(table, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj"]
    command += ["/CN=localhost", "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    server = Server(table, "--team", "Ada,Ben", "--certfile", str(cert), "--keyfile", str(key))
    context = ssl.create_default_context(cafile=cert)
    context.check_hostname = False
    link = server.links[0]
    assert link.startswith("https://127.0.0.1:")
    connection = http.client.HTTPSConnection(link.split("/")[2], context=context, timeout=20)
    connection.request("GET", "/?" + link.partition("?")[2])
    response = connection.getresponse()
    assert response.status == 200
    assert "; Secure" in response.headers["set-cookie"]
    connection.close()
    server.close()


def test_the_start_imports_neither_scikit_learn_nor_numba(table):
    code = (
        "import sys\n"
        "from forerank.label.launch import open_project\n"
        "from forerank.label.page import make_page\n"
        f"page = make_page(open_project({str(table)!r})[0])\n"
        "heavy = {'sklearn', 'numba', 'scipy', 'pandas'} & set(sys.modules)\n"
        "page.stop()\n"
        "print(sorted(heavy))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)  # makes it
    again = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert again.stdout == "[]\n"
