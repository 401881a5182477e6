"""The page of a table in memory."""

import numpy as np
import pytest

from forerank.active import label
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
