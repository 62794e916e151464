"""Finds the ``@hydra.main`` of a script by running the script up to the point where Hydra would take over."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from determined_workflows.hydra.composer.problems import Invalid, Problem


@dataclass(frozen=True)
class App:
    """The decorated function with the arguments of its decorator."""

    function: Callable[..., Any]
    config_path: str | None
    config_name: str | None


class _Composed(BaseException):
    """Ends the script after the composition; ``error`` is what the composition raised, if it did."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.error = error


def run(script: Path | str, arguments: list[str], compose: Callable[[App], None]) -> None:
    """Runs a script as ``__main__`` until it calls the decorated function, and calls ``compose`` in its place.

    A text is the name of a module, which runs as by ``python -m``.

    The configurations that the modules of the script register are then known, as they are in a real run. Raises Invalid
    if the script fails before, or has no function with the decorator.
    """
    apps: list[App] = []
    _replace_decorator(apps, compose)
    module = types.ModuleType("__main__")
    file = None
    try:
        if isinstance(script, Path):
            file, code = script, compile(script.read_bytes(), str(script), "exec")
        else:
            spec, code = _found_module(script)
            file = Path(str(spec.origin))
            module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, spec.parent
        module.__file__ = str(file)
        sys.modules["__main__"] = module
        sys.argv = [str(file), *arguments]
        exec(code, module.__dict__)
    except _Composed as ended:
        if ended.error is not None:
            raise ended.error from None
        return
    except SystemExit as error:
        raise Invalid(
            Problem(f"it ended with exit code {error.code} before @hydra.main", file=str(file or "") or None)
        ) from None
    except Invalid:
        raise
    except (Exception, KeyboardInterrupt) as error:
        raise Invalid(_failure(error, file)) from None
    if len(apps) != 1:
        names = ", ".join(app.function.__name__ for app in apps)
        what = f"it has several functions with @hydra.main and calls none: {names}" if apps else "it has no @hydra.main"
        raise Invalid(Problem(what, hint="name the script that `python SCRIPT` starts", file=str(file)))
    compose(apps[0])


def _replace_decorator(found: list[App], compose: Callable[[App], None]) -> None:
    import hydra
    from hydra import version

    original = hydra.main

    def main(*args: Any, **options: Any) -> Callable[..., Any]:  # noqa: ANN401  # the arguments of hydra.main
        decorated = original(*args, **options)  # sets the version base

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            decorated(function)
            names = ("config_path", "config_name")
            given = {**dict(zip(names, args, strict=False)), **options}
            has_default_path = "config_path" not in given and not version.base_at_least("1.2")
            app = App(function, "." if has_default_path else given.get("config_path"), given.get("config_name"))
            found.append(app)

            def call(*_: object, **__: object) -> None:
                try:
                    compose(app)
                except BaseException as error:
                    raise _Composed(error) from error
                raise _Composed

            return call

        return decorate

    hydra.main = main
    sys.modules["hydra.main"].main = main  # type: ignore[attr-defined]  # for `from hydra.main import main`


def _found_module(name: str) -> tuple[ModuleSpec, types.CodeType]:
    """Returns what ``python -m`` would run. Packages above the module are imported."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.__main__".startswith(error.name):
            raise
        spec = None
    code = spec.loader.get_code(spec.name) if spec is not None and hasattr(spec.loader, "get_code") else None  # type: ignore[union-attr]  # of a loader with source
    if spec is None or code is None:
        hint = f"name a script, or a module as after `python -m` (looked in {Path.cwd()})"
        raise Invalid(Problem(f"there is no file and no module {name} to run", hint))
    return spec, code


def _failure(error: BaseException, script: Path | None) -> Problem:
    """Says where the script failed: at its innermost line that belongs to the user."""
    if isinstance(error, SyntaxError):
        return Problem(f"SyntaxError: {error.msg}", file=error.filename, line=error.lineno, column=error.offset)
    lines = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename
        and any(Path(frame.filename).is_relative_to(folder) for folder in _project_folders(script))
    ]
    file, line = lines[-1] if lines else (str(script) if script else None, None)
    return Problem(f"{type(error).__name__}: {error}", hint=_advice(error, script), file=file, line=line)


def _advice(error: BaseException, script: Path | None) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        name = str(error.name).partition(".")[0]
        for folder in _project_folders(script):
            for place in (folder, folder / "src"):
                if (place / name).is_dir() or (place / f"{name}.py").is_file():
                    return f"it is in {place}: start with PYTHONPATH={place}"
        return f"{sys.executable} does not have it; activate the environment of the project"
    if isinstance(error, ImportError) and "relative import" in str(error) and script is not None:
        names = script.with_suffix("").parts[-2:]
        return f"name it as after `python -m`, from the folder above its package: {'.'.join(names)}"
    return None


def _project_folders(script: Path | None) -> Iterator[Path]:
    """Yields the working folder, and the two above the script."""
    yield Path.cwd()
    if script is not None:
        yield from (script.parent, script.parent.parent)


def declared(script: Path) -> list[tuple[str | None, str | None]]:
    """Returns ``config_path`` and ``config_name`` of each decorator in the text of a script, without running it."""
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return []
    fields = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in ("hydra.main", "main"):
                    fields.append((_text(decorator, "config_path"), _text(decorator, "config_name")))
    return fields


def _text(decorator: ast.Call, name: str) -> str | None:
    given = next((each.value for each in decorator.keywords if each.arg == name), None)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None
