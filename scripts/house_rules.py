"""Project rules that no linter knows: where SQL, state changes, launchers and the service container are allowed; file
length and names; places in YAML; private parts of libraries."""

import ast
import re
import sys
from pathlib import Path

from scripts import launcher_rule, private_parts

ROOTS = ("launch", "harness", "master", "agent", "workflows", "cli")
MAX_LINES = 400
NAMELESS = re.compile(r"(^|/)(utils?|helpers?|common|misc)(/|\.py$|_)")
STATE_SET = re.compile(r"\.state\s*=(?!=)|values\([^)]*\bstate=")
SQL = re.compile(
    r"^from sqlalchemy import .*\b(select|insert|update|delete|text|func)\b"
    r"|session\.(add|add_all|execute|scalars|scalar)\(",
    re.M,
)
SQL_MODULE = re.compile(r"(repository|_queries|_sql|state_machine)\.py$|/determined_master/db/")
UNTYPED_SESSION = re.compile(r"\bAsyncSession\b|\bsession: Any\b")
"""Says neither whether a function reads nor whether it writes."""
WRITING = re.compile(
    r"(^|\.)(insert_rows|insert_for_keys|update_rows|change_row|delete_rows)$"
    r"|^(((sqlite|postgresql)\.)?insert|update|delete|session\.(add|add_all|delete))$"
)
"""Functions and methods that change rows."""
SESSION_MODULES = ("determined_master/db/session.py", "determined_master/db/session_pool.py")
CONTAINER = re.compile(r"\bdetermined_master\.wiring\b|\bdetermined_master import .*\bwiring\b|\bstate\.services\b")
"""The container of all services: endpoints name the services that they use by the types in ``api/dependencies.py``."""
CONTAINER_MODULE = "determined_master/api/dependencies.py"
YAML_MARK = re.compile(r"[.\"](start|end|problem|context)_mark\b(?!\()|\byaml\.(compose|compose_all|parse|scan)\(")
YAML_MODULES = (
    "determined/yaml_places.py",
    *("hydra/composer/yaml_places.py", "rlhf/task/yaml_config.py", "runner/yaml_documents.py"),
)
"""One module for our own Python; the others run in that of a user, without our packages."""
OLDER_NAMES = (
    "determined/util.py",
    *(f"determined/common/{name}.py" for name in ("__init__", "api", "experimental", "util")),
)
"""Modules that users of Determined import by these names; they say what to use."""


def problems(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    found = []
    lines = text.count("\n")
    if lines > MAX_LINES:
        found.append(f"{path}: {lines} lines; split it by verb")
    if NAMELESS.search(str(path)) and not str(path).endswith(OLDER_NAMES):
        found.append(f"{path}: named for nothing; name what it is")
    if YAML_MARK.search(text) and not path.as_posix().endswith(YAML_MODULES):
        found.append(f"{path}: determined.yaml_places reads lines and columns of YAML")
    if "master" in path.parts and SQL.search(text) and not SQL_MODULE.search(str(path)):
        found.append(
            f"{path}: SQL belongs into a module named repository, *_repository, *_queries, *_sql or state_machine"
        )
    if "master" in path.parts and UNTYPED_SESSION.search(text) and not str(path).endswith(SESSION_MODULES):
        found.append(f"{path}: a function takes a ReadSession or a WriteSession")
    if "master" in path.parts and "ReadSession" in text:
        found += _writing_readers(path, text)
    is_endpoint = "determined_master/api/" in path.as_posix() and not path.as_posix().endswith(CONTAINER_MODULE)
    if is_endpoint and CONTAINER.search(text):
        found.append(f"{path}: an endpoint takes the services that it uses, not the container")
    if "master" in path.parts and path.name != "state_machine.py":
        for number, line in enumerate(text.splitlines(), 1):
            if STATE_SET.search(line) and "app.state" not in line:
                found.append(f"{path}:{number}: only StateMachine.move sets a state")
    return found


def _writing_readers(path: Path, text: str) -> list[str]:
    """Reports functions that take a ReadSession and change rows."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not any(ast.unparse(each.annotation or each) == "ReadSession" for each in function.args.args):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and WRITING.search(ast.unparse(call.func)):
                found.append(f"{path}:{call.lineno}: {function.name} takes a ReadSession and changes rows")
    return found


def main() -> int:
    found = [p for root in ROOTS for path in sorted(Path(root).rglob("*.py")) for p in problems(path)]
    found += [p for path in sorted(Path("tests").rglob("*.py")) for p in launcher_rule.problems(path)]
    found += private_parts.problems(Path(), ROOTS)
    for line in found:
        print(line, file=sys.stderr)
    print(f"house rules: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
