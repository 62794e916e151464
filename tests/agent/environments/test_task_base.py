"""The packages of the product's environment that tasks can import."""

from importlib import metadata
from pathlib import Path
from typing import Any

from determined_agent.environments import attempt_venv
from determined_agent.environments.task_base import TaskBase, packages_for_tasks


class Installed(metadata.Distribution):
    """A distribution that only has requirements."""

    def __init__(self, *requires: str) -> None:
        self._lines = [f"Requires-Dist: {requirement}" for requirement in requires]

    def read_text(self, filename: str) -> str | None:
        return "\n".join(["Metadata-Version: 2.1", "Name: x", *self._lines, "", ""]) if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


def test_tasks_see_the_task_packages_and_those_that_the_user_added() -> None:
    installed = {
        "detent-cluster": Installed(
            "fastapi>=0.115", "PyYAML>=6", "pytest; extra == 'dev'", 'torch==2.13.0; extra == "pytorch"'
        ),
        "fastapi": Installed("pydantic"),
        "pydantic": Installed(),
        "pyyaml": Installed(),
        "pytest": Installed("pluggy"),
        "pluggy": Installed(),
        "torch": Installed("sympy", "optree; extra == 'optree'", "gone"),
        "sympy": Installed(),
        "pip": Installed(),
        "added-by-hand": Installed("PyYAML", "Its_Own.part"),
        "its-own-part": Installed(),
    }
    assert packages_for_tasks(installed) == {"torch", "sympy", "pip", "added-by-hand", "pyyaml", "its-own-part"}
    del installed["added-by-hand"]
    assert packages_for_tasks(installed) == {"torch", "sympy", "pip", "its-own-part"}
    installed["torch"] = Installed("pydantic")
    assert "pydantic" in packages_for_tasks(installed)


def test_without_the_products_metadata_tasks_see_every_package() -> None:
    assert packages_for_tasks({"numpy": Installed()}) == {"numpy"}


def test_programs_whose_names_begin_like_pip_run_under_the_python_of_the_attempt(tmp_path: Path):
    scripts = dict.fromkeys(("pip", "pip3.11", "python3", "pip-sync", "pipx", "black"), b"\n")
    base = TaskBase(tmp_path / "python3", (3, 11), (), tmp_path, scripts, ())
    kept = attempt_venv.keep_programs(tmp_path / "data", base)
    assert {path.name for path in kept.iterdir()} == {"pip-sync", "pipx", "black"}
