"""roles.json is checked before anything starts."""

import json
import os
import subprocess
import sys

import pytest

from determined_launch import role_file
from determined_launch.errors import UsageError

GOOD = {"name": "trainer", "command": ["python3", "train.py"]}


@pytest.fixture
def problem(tmp_path):
    """Returns a function that returns what is said about a file."""

    def of(text, largest=2):
        path = tmp_path / "roles.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        with pytest.raises(UsageError) as raised:
            role_file.read(path, largest=largest)
        return str(raised.value).removeprefix(f"{path} ")

    return of


def test_a_role_has_one_process_without_slots_by_default(tmp_path):
    (tmp_path / "roles.json").write_text(json.dumps({"preload": ["torch.nn"], "roles": [GOOD]}))
    file = role_file.read(tmp_path / "roles.json", largest=1)
    assert file.preload == ("torch.nn",)
    assert file.roles == (role_file.Role("trainer", ("python3", "train.py")),)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"slot": 1}, 'roles[0].slot: unknown key; did you mean "slots"?'),
        ({"xyz": 1}, "roles[0].xyz: unknown key; the keys are name, count, slots, command, environment, daemon"),
        ({"name": "Trainer"}, 'roles[0].name: write a lowercase letter, then letters, digits, _ and -, at most 63 in all; found: "Trainer"'),
        ({"count": 0}, "roles[0].count: write a whole number of at least 1; found: 0"),
        ({"count": True}, "roles[0].count: write a whole number of at least 1; found: true"),
        ({"slots": -1}, "roles[0].slots: write a whole number, 0 for a process without a slot; found: -1"),
        ({"slots": 3}, "roles[0].slots: a process has its slots in one container, and the largest container of this trial has 2 slots; found: 3"),
        ({"command": "python3 'a b.py'"}, 'roles[0].command: write a list of words: ["python3", "a b.py"]; found: "python3 \'a b.py\'"'),
        ({"command": []}, 'roles[0].command: write a list of words: ["python3", "train.py"]; found: []'),
        ({"command": [""]}, 'roles[0].command: the first word is the program, and it is empty; found: [""]'),
        ({"environment": {"RANK": "1"}}, "roles[0].environment.RANK: the launch layer sets this variable; remove it"),
        ({"environment": {"DET_ROLE": "1"}}, "roles[0].environment.DET_ROLE: the launch layer sets this variable; remove it"),
        ({"environment": {"A": 1}}, 'roles[0].environment.A: write a string: "1"; found: 1'),
        ({"environment": {"A-B": "1"}}, "roles[0].environment.A-B: the name of a variable has letters, digits and _ only"),
        ({"environment": {"A": "x" * 200_000}}, "roles[0].environment.A: the value has a NUL character or is longer than a variable can be"),
        ({"environment": ["A=1"]}, 'roles[0].environment: write an object of strings: {"NAME": "value"}; found: ["A=1"]'),
        ({"daemon": 1}, "roles[0].daemon: write true or false; found: 1"),
        ({"daemon": True}, "roles: all roles are daemons, so nothing says when the trial ends; take daemon from one of them"),
    ],
)  # fmt: skip
def test_a_fault_of_a_role_is_named_with_its_path_and_what_to_write(problem, changes, said):
    assert problem({"roles": [{**GOOD, **changes}]}) == f"has a fault:\n  {said}"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ([], 'write an object: {"roles": [{"name": "trainer", "slots": 1, "command": ["python3", "train.py"]}]}'),
        ({"roles": []}, "roles: write a list of at least one role"),
        ({"role": [GOOD], "roles": [GOOD]}, 'role: unknown key; did you mean "roles"?'),
        ({"roles": [GOOD, GOOD]}, "roles[1].name: trainer is the name of roles[0] too; choose another one"),
        ({"roles": [GOOD, "x"]}, 'roles[1]: write an object with "name" and "command"'),
        ({"roles": [{**GOOD, "count": 2000}]}, "roles: 2000 processes are more than 1024, the most that one trial can have"),
        ({"roles": [GOOD], "preload": "torch"}, 'preload: write a list of modules: ["torch"]; found: "torch"'),
        ({"roles": [GOOD], "preload": ["a-b"]}, 'preload[0]: write the name of a module, for example "torch"; found: "a-b"'),
    ],
)  # fmt: skip
def test_a_fault_of_the_file_is_named_with_its_path_and_what_to_write(problem, file, said):
    assert problem(file) == f"has a fault:\n  {said}"


def test_all_faults_are_named_at_once(problem):
    assert problem({"roles": [{"name": "a", "count": 0}, {"command": ["x"], "slots": "1"}]}).splitlines() == [
        "has 4 faults:",
        '  roles[0].command: is missing; write a list of words: ["python3", "train.py"]',
        "  roles[0].count: write a whole number of at least 1; found: 0",
        "  roles[1].name: is missing; write a lowercase letter, then letters, digits, _ and -, at most 63 in all",
        '  roles[1].slots: write a whole number, 0 for a process without a slot; found: "1"',
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON in UTF-8: Expecting property name"),
        ('{"roles": 1, "roles": 2}', 'is not JSON in UTF-8: the key "roles" is twice in one object'),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_text_that_is_no_json_is_refused_in_one_sentence(problem, text, said):
    assert problem(text).startswith(said)


def test_a_file_that_is_missing_too_large_or_no_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        role_file.read(tmp_path / "roles.json", largest=1)
    (tmp_path / "large.json").write_bytes(b" " * (role_file.MAX_BYTES + 1))
    with pytest.raises(UsageError, match=rf"cannot read .*larger than {role_file.MAX_BYTES} bytes"):
        role_file.read(tmp_path / "large.json", largest=1)
    os.mkfifo(tmp_path / "fifo.json")
    with pytest.raises(UsageError, match=r"cannot read .*not a regular file"):
        role_file.read(tmp_path / "fifo.json", largest=1)


@pytest.mark.parametrize("words", [[], ["roles.json", "x"], ["--nnodes", "2", "--", "roles.json"], ["--trial", "m:C"]])
def test_the_line_takes_one_file_and_nothing_else(tmp_path, words):
    (tmp_path / "roles.json").write_text(json.dumps({"roles": [GOOD]}))
    done = subprocess.run(
        [sys.executable, "-m", "determined.launch.roles", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "determined.launch.roles: the layer for roles takes one file. Write:\n"
        "  python3 -m determined.launch.roles roles.json\n",
    )
