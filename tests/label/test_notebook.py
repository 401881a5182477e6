"""The page of a table in memory."""

import multiprocessing

import numpy as np
import pytest

from forerank.active import label
from forerank.exceptions import ProjectFileError
from label_client import Client, label_event
from label_service import made_frame


def test_labels_of_a_page_come_back(tmp_path):
    path = tmp_path / "a.forerank-project"
    frame = made_frame(8, included=["1", "", "", "", "", "", "", "0"])
    with label(frame, path, open_browser=False) as page:
        client = Client(page.url)
        client.events(label_event(3, 1), label_event(4, 0))
        client.close()
        assert page.labels().tolist() == [1, -1, 1, 0, -1, -1, -1, 0]
        assert page.url in page._repr_html_()
    with label(frame, path, open_browser=False) as page:
        np.testing.assert_array_equal(page.labels(), [1, -1, 1, 0, -1, -1, -1, 0])
    with pytest.raises(ValueError, match="8 records and the table 5 rows"):
        label(made_frame(5), path, open_browser=False)


def test_a_page_without_a_project_leaves_no_file():
    page = label(made_frame(3), open_browser=False)
    folder = page._service.project.path.parent
    assert folder.is_dir()
    page.stop()
    assert not folder.exists()


def test_another_table_of_as_many_rows_is_refused(tmp_path):
    path, frame = tmp_path / "a.forerank-project", made_frame(6)
    label(frame, path, open_browser=False).stop()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"row 0 of the table .* differs in 'title', 'abstract'"):
        label(frame[::-1], path, open_browser=False)
    changed = frame.assign(abstract=[*frame["abstract"][:5], "another text"])
    with pytest.raises(ValueError, match=r"row 5 .* differs in 'abstract'; give the same table"):
        label(changed, path, open_browser=False)
    assert path.read_bytes() == before
    label(frame, path, open_browser=False).stop()


def test_settings_of_an_existing_project(tmp_path):
    path, frame = tmp_path / "a.forerank-project", made_frame(6)
    with label(frame, path, target=0.9, open_browser=False) as page:
        client = Client(page.url)
        client.events(label_event(3, 1))
        client.close()
    with label(frame, path, strategy="random", open_browser=False) as page:
        settings = page._service.settings
        assert (settings["target"], settings["strategy"]) == (0.9, "random")
    with pytest.raises(ProjectFileError, match="reading has begun"):
        label(frame, path, target=0.8, open_browser=False)
    with pytest.raises(ProjectFileError, match="seed cannot change"):
        label(frame, path, random_state=1, open_browser=False)


@pytest.mark.parametrize(
    "options",
    [
        {"target": 2}, {"target": "0.9"}, {"confidence": 95}, {"strategy": "foo"},
        {"random_state": -1}, {"random_state": 0.5},
    ],
)  # fmt: skip
def test_settings_that_cannot_be(tmp_path, options):
    with pytest.raises(ValueError, match=r"choose|give"):
        label(made_frame(3), tmp_path / "a.forerank-project", open_browser=False, **options)
    assert list(tmp_path.iterdir()) == []


def test_labels_and_scores_stay_after_the_end(capsys):
    page = label(made_frame(3, included=["", "1", ""]), open_browser=False)
    assert capsys.readouterr().err == f"{page.url}\n"
    page.stop()
    page.stop()
    assert page.labels().tolist() == [-1, 1, -1]
    assert page.scores() is None
    with pytest.raises(RuntimeError, match="closed"):
        page._service.submit(lambda: None)


def test_a_script_without_a_guard_has_a_message(monkeypatch):
    process = multiprocessing.current_process()
    monkeypatch.setattr(process, "_inheriting", True, raising=False)
    with pytest.raises(RuntimeError, match="__main__"):
        label(made_frame(3), open_browser=False)
