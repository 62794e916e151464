"""Fails for a module under 25 lines with at most one importer, unless the list below gives the reason why it is one.

A reader of such a module has to open its importer too, so the two are better one file. An importer is a module of the
product that imports it, or names it in a string (``"package.module"``) to load it later.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOTS = ("launch", "harness", "master", "agent", "workflows", "cli")
MIN_LINES = 25
NOT_MODULES = ("__init__.py", "__main__.py")

_USERS = "a name that Determined's users import"
_ENTRYPOINTS = "a module that entrypoints of experiments name; every layer has one"
_NOTEBOOKS = "a name that notebooks of the original grid runner import"
_NOUN = "the table of nouns loads one module for each noun, so that `det` starts fast"
REASONS: Mapping[str, str] = {
    "determined.experimental.core_v2": _USERS,
    "determined.estimator": _USERS,
    "determined.pytorch.experimental": _USERS,
    "determined.common.api": _USERS,
    "determined.common.experimental": _USERS,
    "determined.launch.autohorovod": _ENTRYPOINTS,
    "determined.launch.deepspeed": _ENTRYPOINTS,
    "determined.launch.horovod": _ENTRYPOINTS,
    "determined.launch.tensorflow": _ENTRYPOINTS,
    "determined.launch.torch_distributed": _ENTRYPOINTS,
    "determined.launch.wrap_rank": _ENTRYPOINTS,
    "determined_agent.distribution_guard": "has to run as the first import of the program, and not in the shim",
    "determined_cli.agent.arguments": _NOUN,
    "determined_cli.agent.slot_arguments": _NOUN,
    "determined_cli.dev.arguments": _NOUN,
    "determined_cli.ssh.arguments": _NOUN,
    "determined.exec.probe_storage": "a program of its own: it runs under the Python of the task",
    "runner.mlrunner.examine": _NOTEBOOKS,
    "runner.runner.examine": _NOTEBOOKS,
    "determined_workflows.hydra.task.task_launchers": "travels in the context, where Hydra finds it as a plug-in",
    "determined_master.api.stream_admission": "each ASGI middleware has a module of its own",
    "determined_master.checkpoints.states": "every feature has its table of transitions in a module `states`",
    "determined_master.providers.states": "every feature has its table of transitions in a module `states`",
    "determined_master.loops.storage": "each loop has a module of its own",
}


def modules(base: Path) -> dict[str, Path]:
    """Returns the product's modules by their dotted names."""
    found = {}
    for root in ROOTS:
        for path in sorted((base / root).rglob("*.py")):
            parts = path.relative_to(base / root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def importers(found: Mapping[str, Path]) -> dict[str, set[str]]:
    """Returns, for each module, the modules that import or name it."""
    result: dict[str, set[str]] = {name: set() for name in found}
    for name, path in found.items():
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for other in _names(node, package):
                if other in result and other != name:
                    result[other].add(name)
    return result


def _names(node: ast.AST, package: list[str]) -> Iterator[str]:
    """The dotted names that a node may import: ``from a import b`` gives ``a`` and ``a.b``."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.partition(":")[0]


def problems(base: Path, reasons: Mapping[str, str] = REASONS) -> list[str]:
    """Returns a line for each small module without a reason, and for each reason that is no longer needed."""
    found = modules(base)
    by_module = importers(found)
    small = {
        name: path
        for name, path in found.items()
        if path.name not in NOT_MODULES
        and len(path.read_text(encoding="utf-8").splitlines()) < MIN_LINES
        and len(by_module[name]) <= 1
    }
    lines = []
    for name, path in small.items():
        if name not in reasons:
            who = f"only {', '.join(by_module[name])} imports" if by_module[name] else "nothing imports"
            place = path.relative_to(base)
            lines.append(
                f"{place}: under {MIN_LINES} lines, and {who} it; merge them, or add a reason to small_files.py"
            )
    return lines + [f"scripts/small_files.py: {name} needs no reason any more" for name in reasons if name not in small]


def main() -> int:
    found = problems(Path())
    for line in found:
        print(line, file=sys.stderr)
    print(f"small files: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
