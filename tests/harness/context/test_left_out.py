"""A missing file that `.detignore` left out is named with the line that says so."""

from pathlib import Path

import pytest

from determined.context import pack, unpack
from determined.context.left_out import MAX_COMMENT, comment_of, explain

IGNORED = "# data\n*.csv\n!keep.csv\n/data/raw/\nhelpers.py\n"
RAW = ".detignore leaves data/raw out of the context (line 4: /data/raw/)"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/x.csv'",
            ".detignore leaves data/x.csv out of the context (line 2: *.csv)",
        ),
        ("[rank=1] FileNotFoundError: [Errno 2] No such file or directory: '{}/data/raw/a/b.bin'", RAW),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data/raw'", RAW),
        ("cat: ./data/raw/x: No such file or directory", RAW),
        (
            "python3: can't open file '{}/helpers.py': [Errno 2] No such file or directory",
            ".detignore leaves helpers.py out of the context (line 5: helpers.py)",
        ),
        (
            "ModuleNotFoundError: No module named 'helpers'",
            ".detignore leaves helpers.py out of the context (line 5: helpers.py)",
        ),
        (
            "fatal: .git/HEAD: No such file or directory",
            ".git is never sent with a context (.git/)",
        ),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'keep.csv'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x.csv'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: '../x.csv'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'there.csv'", ""),
        ("loss 0.3", ""),
    ],
)
def test_a_missing_file_is_explained_by_the_line_that_leaves_it_out(line: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "there.csv").touch()
    assert explain([line.format(tmp_path), "step 3"], tmp_path, IGNORED) == sentence


def test_the_lines_of_detignore_travel_with_the_archive_and_not_as_a_file(tmp_path: Path) -> None:
    folder, target = tmp_path / "ctx", tmp_path / "target"
    folder.mkdir()
    (folder / "train.py").write_text("x")
    assert unpack(pack(folder).data, target) == ""
    (folder / ".detignore").write_text(IGNORED + "gr\u00fcn\n")
    assert unpack(pack(folder).data, target) == IGNORED + "gr\u00fcn\n"
    assert [each.name for each in target.iterdir()] == ["train.py"]


def test_a_long_detignore_is_not_carried(tmp_path: Path) -> None:
    (tmp_path / ".detignore").write_text("x\n" * MAX_COMMENT)
    assert comment_of(tmp_path) == ""
