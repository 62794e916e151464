"""Paths of pages of tasks that a link names."""

import pytest

from determined.errors import BadRequest
from determined_master.api.detent.task_pages import checked_path


@pytest.mark.parametrize(
    "path", ["//[", "//evil.example", "/\\evil.example", "https://evil.example/", "a", "", "/a\nb"]
)
def test_what_a_browser_may_read_as_another_host_is_refused(path: str):
    with pytest.raises(BadRequest, match="begins with one slash"):
        checked_path(path)


@pytest.mark.parametrize("path", ["/", "/a/b?c=d", "/[", "/a//b"])
def test_a_path_of_the_origin_itself_is_taken(path: str):
    assert checked_path(path) == path
