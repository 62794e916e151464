"""The input files of an environment, its hash, and the line of each requirement."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.environments import Inputs, read_inputs, requirements
from determined.environments.inputs import MAX_FILE_BYTES
from determined.errors import ConfigError


def read_from(files: dict[str, str], main: str = "requirements.txt", python: str | None = None) -> Inputs:
    encoded = {name: text.encode() for name, text in files.items()}
    return read_inputs(main, python, encoded.get)


def test_files_that_requirements_include_are_inputs():
    files = {
        "env/requirements.txt": "-r more/base.txt\n--constraint=pins.txt\nnumpy\n",
        "env/more/base.txt": "-r ../requirements.txt\nscipy\n",
        "env/pins.txt": "numpy==2.0\n",
        "other.txt": "torch\n",
    }
    inputs = read_from(files, "env/requirements.txt")
    assert inputs.kind == "requirements"
    assert set(inputs.files) == {"env/requirements.txt", "env/more/base.txt", "env/pins.txt"}


@pytest.mark.parametrize(
    ("main", "kind", "beside"),
    [
        ("Pipfile", "pipfile", {"Pipfile.lock"}),
        ("uv.lock", "uv_lock", {"pyproject.toml"}),
        ("pyproject.toml", "pyproject", set()),
        ("dev-requirements.txt", "requirements", set()),
    ],
)
def test_the_name_of_the_main_file_selects_the_kind_and_the_other_files(main: str, kind: str, beside: set[str]):
    files = dict.fromkeys(["Pipfile", "Pipfile.lock", "uv.lock", "pyproject.toml", "dev-requirements.txt"], "")
    inputs = read_from(files, main)
    assert (inputs.kind, set(inputs.files)) == (kind, {main, *beside})


@pytest.mark.parametrize(
    ("files", "main", "message"),
    [
        ({}, "requirements.txt", "requirements.txt is not in the context"),
        ({"uv.lock": ""}, "uv.lock", "uv.lock needs pyproject.toml, which is not in the context"),
        ({"requirements.txt": "numpy\n\n-r base.txt"}, "requirements.txt", "requirements.txt:3: base.txt is not in"),
        ({"requirements.txt": "-r ../base.txt"}, "requirements.txt", "requirements.txt:1: ../base.txt is not in"),
        (
            {"requirements.txt": "-r https://a/b.txt"},
            "requirements.txt",
            "requirements.txt:1: https://a/b.txt is not in",
        ),
        ({"requirements.txt": "# ours\n-e ."}, "requirements.txt", "requirements.txt:2: . is a path"),
        ({"requirements.txt": "./wheels/a.whl"}, "requirements.txt", "requirements.txt:1: ./wheels/a.whl is a path"),
        (
            {"requirements.txt": "a @ file:///x/a.whl"},
            "requirements.txt",
            "requirements.txt:1: file:///x/a.whl is a path",
        ),
    ],
)
def test_files_that_cannot_be_used_are_refused_with_their_line(files: dict[str, str], main: str, message: str):
    with pytest.raises(ConfigError) as refused:
        read_from(files, main)
    assert refused.value.message.startswith(message)


def test_a_remote_archive_is_accepted():
    read_from({"requirements.txt": "a @ https://host/a-1.0.tar.gz\n-e git+https://host/b.git#egg=b\n"})


BASE = Inputs("requirements", "requirements.txt", {"requirements.txt": b"-r a.txt", "a.txt": b"numpy"}, "3.11")


@pytest.mark.parametrize(
    "changed",
    [
        Inputs("pipfile", BASE.main, BASE.files, BASE.python),
        Inputs(BASE.kind, "a.txt", BASE.files, BASE.python),
        Inputs(BASE.kind, BASE.main, {**BASE.files, "a.txt": b"numpy==1"}, BASE.python),
        Inputs(BASE.kind, BASE.main, {**BASE.files, "b.txt": b""}, BASE.python),
        Inputs(BASE.kind, BASE.main, {"requirements.txt": b"numpy", "a.txt": b"-r a.txt"}, BASE.python),
        Inputs(BASE.kind, BASE.main, BASE.files, "3.12"),
        Inputs(BASE.kind, BASE.main, BASE.files, None),
    ],
    ids=["kind", "main file", "content", "another file", "exchanged", "python", "no python"],
)
def test_each_input_changes_the_key_of_an_environment(changed: Inputs):
    assert changed.key("machine") != BASE.key("machine")


def test_each_fact_of_the_machine_changes_the_key_of_an_environment():
    assert len({BASE.key(), BASE.key("a"), BASE.key("b"), BASE.key("a", "b"), BASE.key("ab")}) == 5


@given(st.dictionaries(st.text(min_size=1), st.binary()), st.randoms())
def test_the_order_of_files_does_not_change_the_key(files: dict[str, bytes], random):
    names = list(files)
    random.shuffle(names)
    shuffled = {name: files[name] for name in names}
    assert Inputs("pyproject", "p", shuffled).key() == Inputs("pyproject", "p", files).key()


@given(st.binary())
def test_reading_any_bytes_gives_inputs_or_a_config_error(content: bytes):
    try:
        inputs = read_inputs("requirements.txt", None, lambda name: content if name == "requirements.txt" else None)
    except ConfigError:
        return
    requirements(inputs)


def test_requirements_returns_the_file_and_the_line_of_each_requirement():
    text = (
        "# all\nNumPy >= 2 ; python_version > '3' # fast\n\nruamel.yaml[jinja2]==1 \\\n  --hash=sha256:00\n-r x.txt\n"
    )
    wanted = requirements(Inputs("requirements", "r.txt", {"r.txt": text.encode(), "x.txt": b"--pre\ntorch\n"}))
    assert [(requirement.name, requirement.file, requirement.line) for requirement in wanted] == [
        ("numpy", "r.txt", 2),
        ("ruamel-yaml", "r.txt", 4),
        ("torch", "x.txt", 2),
    ]
    pyproject = b'[project]\ndependencies = [\n  "Numpy>=2",\n  "torch",\n]\n'
    wanted = requirements(Inputs("pyproject", "pyproject.toml", {"pyproject.toml": pyproject}))
    lines = [(requirement.name, requirement.line) for requirement in wanted]
    assert [line for line in lines if line[0] in ("numpy", "torch")] == [("numpy", 3), ("torch", 4)]


def chain(count: int) -> dict[str, str]:
    return {f"r{number}.txt": f"-r r{number + 1}.txt" for number in range(count)} | {f"r{count}.txt": "numpy"}


def test_files_that_include_each_other_deeper_than_ten_are_refused() -> None:
    assert len(read_from(chain(9), "r0.txt").files) == 10
    with pytest.raises(ConfigError, match=r"r9\.txt:1: more than 10 files include each other"):
        read_from(chain(1500), "r0.txt")


def test_more_than_fifty_files_are_refused() -> None:
    files = {"r.txt": "\n".join(f"-r {number}.txt" for number in range(50))} | {f"{n}.txt": "" for n in range(50)}
    with pytest.raises(ConfigError, match=r"is the 51th file of one environment; 50 are allowed"):
        read_from(files, "r.txt")


def test_files_that_all_include_each_other_are_each_read_once() -> None:
    names = [f"{number}.txt" for number in range(40)]
    read: list[str] = []

    def content(name: str) -> bytes:
        read.append(name)
        return "\n".join(f"-r {each}" for each in names).encode()

    read_inputs("0.txt", None, content)
    assert sorted(read) == sorted(names)


def test_a_file_larger_than_four_mebibytes_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most 4 MiB each and 16 MiB together"):
        read_from({"r.txt": "#" * (MAX_FILE_BYTES + 1)}, "r.txt")


@pytest.mark.parametrize(
    "line",
    [
        "-e.",
        "-e ./pkg",
        "--editable=pkg",
        "pkg/",
        "sub/pkg[extra]",
        "--find-links ./w",
        "-f w",
        "-fw",
        "-f file:///w",
        "--no-index --find-links=w",
        "-i ./simple",
        "--extra-index-url simple",
        "pkg @ file:///w",
        "x.whl",
    ],
)
def test_a_line_that_names_a_path_is_refused(line: str) -> None:
    with pytest.raises(ConfigError, match=r"r\.txt:2: .* is a path"):
        read_from({"r.txt": f"numpy\n{line}\n"}, "r.txt")


@pytest.mark.parametrize(
    "line",
    [
        "numpy>=1,<2",
        'torch ; platform_machine != "a/b"',
        "-i https://host/simple",
        "--find-links https://host/w",
        "pkg @ git+https://host/a/b.git@v1",
        "git+https://host/a/b",
        "-e git+https://host/a/b#egg=b",
        "--no-index",
    ],
)
def test_a_line_that_names_no_path_is_accepted(line: str) -> None:
    assert read_from({"r.txt": line}, "r.txt").main == "r.txt"


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("Pipfile", '[packages]\npkg = {path = "./pkg", editable = true}\n', "Pipfile:2: ./pkg"),
        ("pyproject.toml", '[tool.uv.sources]\npkg = { path = "../pkg" }\n', "pyproject.toml:2: ../pkg"),
    ],
)
def test_a_path_as_the_source_of_a_package_is_refused(name: str, text: str, place: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(place) + " is a path"):
        read_from({name: text}, name)


def test_paths_of_a_project_that_are_no_packages_are_accepted() -> None:
    text = '[project]\nreadme = {file = "README.md"}\n[tool.hatch.version]\npath = "src/x.py"\n'
    assert read_from({"pyproject.toml": text}, "pyproject.toml").kind == "pyproject"
