"""The explanation of a missing file that ``.detignore`` left out of the context."""

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


def test_the_lines_of_detignore_are_stored_in_the_archive_but_not_as_a_file(tmp_path: Path) -> None:
    folder, target = tmp_path / "ctx", tmp_path / "target"
    folder.mkdir()
    (folder / "train.py").write_text("x")
    assert unpack(pack(folder).data, target) == ""
    (folder / ".detignore").write_text(IGNORED + "gr\u00fcn\n")
    assert unpack(pack(folder).data, target) == IGNORED + "gr\u00fcn\n"
    assert [path.name for path in target.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'shared/data/x.csv'",
            "shared/.detignore leaves shared/data/x.csv out of the context (line 1: *.csv)",
        ),
        (
            "ModuleNotFoundError: No module named 'shared.secret'",
            "shared/.detignore leaves shared/secret.py out of the context (line 2: /secret.py)",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'x.bin'",
            ".detignore leaves x.bin out of the context (line 1: *.bin)",
        ),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'shared/x.bin'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x.csv'", ""),
    ],
)
@pytest.mark.parametrize("own", ["*.bin", "*.bin\n"])
def test_a_missing_file_of_an_included_folder_is_explained_by_its_own_lines(
    line: str, sentence: str, own: str, tmp_path: Path
) -> None:
    folder, shared = tmp_path / "ctx", tmp_path / "lib" / "shared"
    for parent, lines in ((folder, own), (shared, "*.csv\n/secret.py")):
        parent.mkdir(parents=True)
        (parent / "code.py").write_text("x")
        (parent / ".detignore").write_text(lines)
    (tmp_path / "one.py").touch()
    target = tmp_path / "target"
    comment = unpack(pack(folder, [shared, tmp_path / "one.py"]).data, target)
    assert explain([line], target, comment) == sentence


@pytest.mark.parametrize(("included", "file"), [("", "x.csv"), ("shared", "shared/x.csv")])
def test_a_detignore_that_is_too_long_to_send_is_named_as_the_possible_cause(
    included: str, file: str, tmp_path: Path
) -> None:
    folder, shared = tmp_path / "ctx", tmp_path / "shared"
    for parent in (folder, shared):
        parent.mkdir()
        (parent / "code.py").write_text("x")
    (tmp_path / (included or "ctx") / ".detignore").write_text("*.csv\n" * MAX_COMMENT)
    comment = comment_of(folder, {"shared": shared})
    assert len(comment) < 100
    line = "FileNotFoundError: [Errno 2] No such file or directory: '{}'"
    expected = (
        f"{file} is not in the context; {file.removesuffix('x.csv')}.detignore may leave it out: its lines are not "
        "known here, because more than 16 KiB of them are not sent"
    )
    assert explain([line.format(file)], tmp_path / "none", comment) == expected
    assert explain([line.format("/data/x.csv")], tmp_path / "none", comment) == ""
    assert explain([line.format("a/__pycache__/b.pyc")], tmp_path / "none", comment).startswith(
        "a/__pycache__ is never"
    )
