"""Project rule: every private part of a library that our packages use is listed in docs/architecture/private-parts.md,
its library has an upper bound in pyproject.toml, and a test fails when the part changes."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path("docs/architecture/private-parts.md")
OF_NAMED_TUPLES = frozenset({"_asdict", "_fields", "_field_defaults", "_make", "_replace"})
"""Public in spite of the underscore, which keeps them apart from fields. Rows of SQLAlchemy have them too."""
BY_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr"})
IN_BACKTICKS = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    """A row of the page. ``parts``: attributes, or modules by their dotted names."""

    library: str
    parts: tuple[str, ...]
    files: tuple[str, ...]
    tests: tuple[str, ...]


def read_page(text: str) -> list[Row]:
    """Returns the rows of the page's table: library, parts, files, reason, tests."""
    rows = []
    for line in text.splitlines():
        cells = [tuple(IN_BACKTICKS.findall(cell)) for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 5:
            rows.append(Row(cells[0][0], cells[1], cells[2], cells[4]))
    return rows


def own_names(trees: Iterable[ast.AST]) -> set[str]:
    """Returns the names that our packages define: functions, classes, and attributes of ``self`` and of classes."""
    found: set[str] = set()
    for node in (each for tree in trees for each in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _name(node.value) == "self":
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def parts_used(tree: ast.AST, own: set[str], first_party: set[str], listed: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields line and name of each private part of a library: modules by their dotted names, attributes without the
    object. ``listed``: modules without an underscore that count too."""
    modules = [part for part in listed if "." in part]
    known = _origins(tree, first_party)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _imported(node):
                if _is_library(name, first_party) and (_has_private(name) or _is_within(name, modules)):
                    yield node.lineno, name
        attribute, base = _attribute(node)
        if attribute and base is not None and attribute not in OF_NAMED_TUPLES:
            origin = known.get(_root(base))
            # Of an object of unknown type: a name that nothing of ours has.
            if origin == "library" or (origin is None and attribute not in own and _name(base) not in ("self", "cls")):
                yield node.lineno, attribute


def problems(root: Path, packages: Iterable[str]) -> list[str]:
    """Returns a sentence for each part that is not listed, and for each row that is not true."""
    rows = read_page((root / PAGE).read_text(encoding="utf-8"))
    paths = [path for package in packages for path in sorted((root / package).rglob("*.py"))]
    trees = {path.relative_to(root).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    first_party = {path.name for package in packages for path in (root / package).iterdir()} | {"hydra_plugins"}
    own: dict[str, set[str]] = {}
    for file, tree in trees.items():
        own.setdefault(_area(file), set()).update(own_names([tree]))
    listed = [part for row in rows for part in row.parts]
    found, used = [], set()
    for file, tree in trees.items():
        for line, part in parts_used(tree, own[_area(file)], first_party, listed):
            of = [(row, each) for row in rows if file in row.files for each in row.parts if _is_within(part, [each])]
            used.update((row, file) for row, _ in of)
            used.update(of)
            if not of:
                found.append(f"{file}:{line}: {part} is private to its library; list it in {PAGE} with a test")
    for row in rows:
        found += [f"{PAGE}: {file} uses none of the parts" for file in row.files if (row, file) not in used]
        found += [f"{PAGE}: {part} is not used" for part in row.parts if (row, part) not in used]
        found += [f"{PAGE}: there is no {test}" for test in row.tests if not (root / test.partition("::")[0]).exists()]
        found += [] if row.tests else [f"{PAGE}: {row.parts[0]} has no test"]
    return found + [f"pyproject.toml: {each}" for each in _unbounded(root, {row.library for row in rows})]


def _area(file: str) -> str:
    """Returns the folder whose modules may know private names of each other."""
    return "/".join(file.split("/")[:3])


def _unbounded(root: Path, libraries: set[str]) -> list[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    found = [
        f"{library} is not a dependency" for library in sorted(libraries - {_distribution(each) for each in needed})
    ]
    unbounded = {each for each in needed if _distribution(each) in libraries and not re.search(r"<|==", each)}
    return found + [f'"{each}" has no upper bound, but private parts of it are used' for each in sorted(unbounded)]


def _distribution(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]


def _origins(tree: ast.AST, first_party: set[str]) -> dict[str, str]:
    """Returns of each name of a module whether its import or annotation says ``library`` or ``known``."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias, full in zip(node.names, _imported(node), strict=True):
                name = alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
                found[name] = "library" if _is_library(full, first_party) else "known"
    for node in ast.walk(tree):
        name, source = _typed(node)
        if name and source != "Any" and source in found:
            found.setdefault(name, found[source])
    return found


def _typed(node: ast.AST) -> tuple[str, str]:
    """Returns a name, and the name of what says its type: an annotation, or what is called to make it."""
    if isinstance(node, ast.arg) and node.annotation is not None:
        return node.arg, _root(node.annotation)
    if isinstance(node, ast.AnnAssign):
        return _name(node.target), _root(node.annotation)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
        return _name(node.targets[0]), _root(node.value.func)
    return "", ""


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    above = "." * node.level + (node.module or "")
    return [f"{above}.{alias.name}" for alias in node.names]


def _attribute(node: ast.AST) -> tuple[str, ast.expr | None]:
    """Returns name and object of an access to a private attribute, also by ``getattr`` with a constant name."""
    if isinstance(node, ast.Attribute) and _is_private(node.attr):
        return node.attr, node.value
    if isinstance(node, ast.Call) and _name(node.func) in BY_NAME and len(node.args) > 1:
        name = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
        if isinstance(name, str) and _is_private(name):
            return name, node.args[0]
    return "", None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return _name(node)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_library(name: str, first_party: set[str]) -> bool:
    top = name.partition(".")[0]
    return bool(top) and top not in sys.stdlib_module_names and top not in first_party


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _has_private(name: str) -> bool:
    return any(map(_is_private, name.split(".")))


def _is_within(name: str, above: Iterable[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in above)
