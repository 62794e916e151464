"""Command files: lines that are joined, and files that are refused."""

from pathlib import Path

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import command_file

MULTI_LINE = """\
torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=1 \\
    --standalone
    main.py --a 1
"""


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("# experiment_configurations.txt\n\npython main.py --train\n", "python main.py --train"),
        ("python main.py \\\n--train \\\n--batch_size 6\n", "python main.py --train --batch_size 6"),
        (MULTI_LINE, "torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=1 --standalone main.py --a 1"),
        ("python main.py\\\n  # --old 1 \\\n --new 2", "python main.py --new 2"),
        ("python main.py '#1' # a comment of bash", "python main.py '#1' # a comment of bash"),
        ('python main.py --list 1,2 --name "a  b"\r\n', 'python main.py --list 1,2 --name "a  b"'),
        ("\ufeffpython main.py", "python main.py"),
        ("echo a\\\\\necho b", "echo a\\\\ echo b"),
    ],
)
def test_lines_are_joined_by_a_space_without_comments(text: str, command: str, tmp_path: Path) -> None:
    path = tmp_path / "command.txt"
    path.write_bytes(text.encode())
    assert command_file.read(path) == command


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"# only\n\n", "has no command, only blank lines and comments"),
        (b"\\\n", "has no command"),
        (b"a\0b", "is not text"),
        (b"\xff\xfe", "is not UTF-8 text: byte 0"),
        (b"a" * (command_file.MAX_BYTES + 1), "has more than 1 MiB"),
    ],
)
def test_a_file_without_a_command_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "command.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        command_file.read(path)


def test_a_missing_file_is_named_with_the_flag(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.txt cannot be read: No such file or directory; --configs"):
        command_file.read(tmp_path / "absent.txt")
