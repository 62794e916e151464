"""Project rule: only tests below tests/e2e start or import the launchers of torch, deepspeed and horovod."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

LAUNCHERS = ("deepspeed", "horovod", "torch.distributed.run", "torch.distributed.launch", "torch.distributed.launcher")
STARTED = re.compile(
    r"torch\.distributed\.(run|launch)\b|torchrun|horovodrun|horovod\.runner|deepspeed\.launcher"
    r"|determined\.launch\.(torch_distributed|deepspeed|horovod|\{\})"
)
"""Names by which a launcher, or a layer that starts one, is put on a command line; ``{}`` is a field of an f-string."""
STARTS_PROCESSES = ("subprocess", "asyncio.subprocess", "multiprocessing")
LAUNCHER_SUPPORT = ("tests.support.launchers", "tests.support.live_launchers", "tests.support.layers")
"""Support modules that start launchers; only they themselves and tests/e2e import them."""
PLACE = "such tests are below tests/e2e/launchers"
ALLOWED = {
    "tests/launch/test_missing_framework.py": "runs the layers in a Python that has no framework at all",
    "tests/harness/exec/test_run_task.py": "compares command lines; the tasks that it starts have one slot",
}


def problems(path: Path) -> list[str]:
    """Returns what is wrong in one file below ``tests``; its path is relative to the repository."""
    module = ".".join(path.with_suffix("").parts)
    if path.is_relative_to("tests/e2e") or str(path) in ALLOWED or module in LAUNCHER_SUPPORT:
        return []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = [name for node in ast.walk(tree) for name in _imports(node)]
    found = []
    for name in imported:
        if _is_below(name, LAUNCHERS):
            found.append(f"{path}: imports the launcher {name}; {PLACE}")
        if _is_below(name, LAUNCHER_SUPPORT):
            found.append(f"{path}: imports {name}, which starts launchers; {PLACE}")
    if any(_is_below(name, STARTS_PROCESSES) for name in imported):
        words = sorted({match[0] for text in _texts(tree) for match in STARTED.finditer(text)})
        found += [f"{path}: starts processes and names {word}; {PLACE}" for word in words]
    return found


def _is_below(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def _imports(node: ast.AST) -> Iterator[str]:
    """The modules that a node imports, ``from a import b`` as ``a.b``; also by ``importorskip``, ``import_module``."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        if called in ("importorskip", "import_module") and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def _texts(tree: ast.AST) -> Iterator[str]:
    """Every string of the code; the fields of an f-string are written ``{}``. Docstrings are not code."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
