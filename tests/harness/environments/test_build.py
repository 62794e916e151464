"""Building environments with the real pip, uv and pipenv, from an index on this machine."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.package_index import PackageIndex, package_index
from tests.support.packages import listing, make_environment, make_wheel

from determined.environments import BuildFailed, Result, build, read_inputs, read_packages, read_result
from determined.environments.__main__ import main

pytestmark = pytest.mark.budget(25, "installs packages")

INSTALLERS = Path(__file__).parents[3] / ".cache" / "installers" / "bin"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    with package_index(tmp_path / "wheels") as created:
        created.add("parrot", "1.0", "2.0")
        yield created


def variables(index: PackageIndex, *installers: str, folder: Path) -> dict[str, str]:
    """Returns environment variables with only these installers in PATH."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in installers:
        assert (INSTALLERS / name).exists(), "make installers"
        (programs / name).symlink_to(INSTALLERS / name)
    index_variables = dict(variable.split("=", 1) for variable in index.variables)
    return {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), **index_variables}


def build_files(index: PackageIndex, folder: Path, files: dict[str, str], *installers: str) -> tuple[Result, str]:
    """Builds from files, of which the first is the main one. Returns the result and the version of parrot in it."""
    context = folder / "context"
    context.mkdir()
    for name, text in files.items():
        (context / name).write_text(text)
    inputs = read_inputs(next(iter(files)), None, lambda name: (context / name).read_bytes() if name in files else None)
    environ = variables(index, *installers, folder=folder)
    result = build(inputs, context, folder / "built", environ, say=lambda line: None)
    return result, version_of_parrot(folder / "built")


def test_a_build_on_a_python_installs_only_missing_packages(index: PackageIndex, tmp_path: Path):
    """The Python itself is not changed."""
    index.add("owl", "1.0")
    base = make_environment(tmp_path / "base", make_wheel(tmp_path / "wheels", "parrot", "1.0"))
    before = listing(base)
    environ = variables(index, folder=tmp_path)
    python = str(base / "bin" / "python")
    result = build(read_packages(["owl", "parrot"]), tmp_path, tmp_path / "built", environ, lambda line: None, python)
    assert (result.is_complete, index.asked) == (True, {"owl-1.0-py3-none-any.whl": 1})
    code = "import owl, parrot, sys; print(parrot.version, sys.prefix in owl.__file__, sys.prefix in parrot.__file__)"
    output = subprocess.run(
        [tmp_path / "built/venv/bin/python", "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.split() == ["1.0", "True", "False"]
    assert listing(base) == before


def test_the_error_names_a_package_that_does_not_exist(index: PackageIndex, tmp_path: Path):
    environ = variables(index, folder=tmp_path)
    with pytest.raises(BuildFailed, match=r'environment\.pip:2: "owl==9\.0": No matching distribution found'):
        build(read_packages(["parrot", "owl==9.0"]), tmp_path, tmp_path / "built", environ, lambda line: None)


def version_of_parrot(folder: Path) -> str:
    code = "import parrot, sys; assert sys.prefix in parrot.__file__; print(parrot.version)"
    return subprocess.run(
        [folder / "venv" / "bin" / "python", "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


LOCK = """version = 1
requires-python = ">=3.10"

[[package]]
name = "parrot"
version = "1.0"
source = { registry = "URL" }
wheels = [{ url = "FILE", hash = "sha256:HASH" }]

[[package]]
name = "ours"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "parrot" }]

[package.metadata]
requires-dist = [{ name = "parrot", specifier = ">=1" }]
"""
PROJECT = '[project]\nname = "ours"\nversion = "0"\nrequires-python = ">=3.10"\ndependencies = ["parrot>=1"]\n'
PIPFILE = '[[source]]\nurl = "URL"\nverify_ssl = false\nname = "here"\n\n[packages]\nparrot = "==1.0"\n'


@pytest.mark.parametrize("installers", [pytest.param((), marks=pytest.mark.long), ("uv",)], ids=["pip", "uv"])
def test_requirements_are_installed_by_pip_and_uv(index: PackageIndex, tmp_path: Path, installers: tuple[str, ...]):
    result, version = build_files(index, tmp_path, {"requirements.txt": "parrot<2\n"}, *installers)
    assert version == "1.0"
    assert (result.is_complete, result.packages >= 1, result.bytes > 0) == (True, True, True)


@pytest.mark.long
@pytest.mark.parametrize("installers", [(), ("uv",)], ids=["pip", "uv"])
def test_the_dependencies_of_pyproject_are_installed_by_pip_and_uv(
    index: PackageIndex, tmp_path: Path, installers: tuple[str, ...]
):
    assert build_files(index, tmp_path, {"pyproject.toml": PROJECT}, *installers)[1] == "2.0"


def test_uv_lock_decides_the_version(index: PackageIndex, tmp_path: Path):
    url, digest = index.file_of("parrot", "1.0")
    lock = LOCK.replace("URL", index.url).replace("FILE", url).replace("HASH", digest)
    assert build_files(index, tmp_path, {"uv.lock": lock, "pyproject.toml": PROJECT}, "uv")[1] == "1.0"


@pytest.mark.long  # uv.lock, below, is the other file with versions
def test_pipfile_decides_the_version(index: PackageIndex, tmp_path: Path):
    assert build_files(index, tmp_path, {"Pipfile": PIPFILE.replace("URL", index.url)}, "pipenv")[1] == "1.0"


@pytest.mark.parametrize(
    ("files", "installers", "sentence"),
    [
        (
            {"requirements.txt": "\nparrot==9\n"},
            (),
            'requirements.txt:2: "parrot==9": No matching distribution found for parrot==9',
        ),
        pytest.param(
            {"requirements.txt": "\nparrot==9\n"},
            ("uv",),
            'requirements.txt:2: "parrot==9": Because there is no version',
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"pyproject.toml": PROJECT.replace(">=1", "==9")},
            ("uv",),
            'pyproject.toml:5: "parrot==9": Because there is no version of parrot==9',
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"Pipfile": PIPFILE.replace("1.0", "9")}, ("pipenv",), 'Pipfile:7: "parrot":', marks=pytest.mark.long
        ),
        ({"Pipfile": PIPFILE}, (), "environment.venv.requirements: Pipfile needs pipenv on this machine (pip install"),
        ({"uv.lock": "", "pyproject.toml": PROJECT}, (), "environment.venv.requirements: uv.lock needs uv on this"),
        ({"pyproject.toml": "[project"}, (), "pyproject.toml is not TOML: "),
    ],
    ids=["pip", "uv", "pyproject", "pipfile", "no pipenv", "no uv", "no toml"],
)
def test_a_failed_build_names_the_requirement_and_leaves_no_environment(
    index: PackageIndex, tmp_path: Path, files: dict[str, str], installers: tuple[str, ...], sentence: str
):
    served = {name: text.replace("URL", index.url) for name, text in files.items()}
    with pytest.raises(BuildFailed) as failed:
        build_files(index, tmp_path, served, *installers)
    assert str(failed.value).startswith(sentence)
    assert read_result(tmp_path / "built") == Result(False, str(failed.value))
    assert not (tmp_path / "built" / "venv").exists()


@pytest.mark.long  # pip retries for some time
def test_an_unreachable_index_is_named(index: PackageIndex, tmp_path: Path):
    dead = PackageIndex("http://127.0.0.1:9/simple", index.folder)
    with pytest.raises(BuildFailed, match=r"the package index did not answer: 127\.0\.0\.1:9: Connection refused"):
        build_files(dead, tmp_path, {"requirements.txt": "parrot\n"})


def test_a_concurrent_build_waits_and_reuses_the_environment(index: PackageIndex, tmp_path: Path):
    index.gate.clear()
    (tmp_path / "r.txt").write_text("parrot\n")
    inputs = read_inputs("r.txt", None, lambda name: b"parrot\n")
    lines: list[str] = []
    waits = threading.Event()

    def on_line(line: str) -> None:
        lines.append(line)
        waits.set()

    environ = variables(index, folder=tmp_path)
    first = threading.Thread(target=build, args=(inputs, tmp_path, tmp_path / "built", environ, lambda line: None))
    first.start()
    assert index.is_asked.wait(60)
    second = threading.Thread(target=build, args=(inputs, tmp_path, tmp_path / "built", environ, on_line))
    second.start()
    assert waits.wait(60)
    index.gate.set()
    first.join()
    second.join()
    assert lines == [
        "another build of this environment runs; waiting for it",
        "the environment built is complete already",
    ]
    assert sum(index.asked.values()) == 1


@pytest.mark.long  # a failed build leaves nothing either
def test_a_killed_build_is_repeated(index: PackageIndex, tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("parrot==1.0\n")
    environ = {**variables(index, folder=tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "determined.environments", str(tmp_path / "all"), "--context", str(tmp_path)]
    index.gate.clear()
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as killed:
        assert index.is_asked.wait(60)
        killed.kill()
    (folder,) = (tmp_path / "all").iterdir()
    assert read_result(folder) is None
    index.gate.set()
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder / "venv")
    assert version_of_parrot(folder) == "1.0"


def test_a_missing_requirements_file_is_an_error_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main([str(tmp_path), "--context", str(tmp_path)]) != 0
    assert capsys.readouterr().err == "requirements.txt is not in the context\n"
