"""Fails for functions, classes, methods and properties of the product that nothing in it uses. Tests do not count.

vulture finds the candidates. What users call, what a framework calls by its name, and what the command line names in a
string (``"module:function"``) is left out.
"""

import re
import sys
from pathlib import Path

import asyncssh
import httpcore
import vulture

PATHS = ("launch/determined_launch", "harness/determined", "master/determined_master", "agent/determined_agent")
MORE_PATHS = ("workflows/determined_workflows", "cli/determined_cli", "bench", "scripts", "migrations")
KINDS = ("function", "class", "method", "property")
PUBLIC = re.compile(
    r"harness/determined/(core|keras|pytorch|experimental|[^/]+\.py$)|^workflows/.*/examine\.py$|^bench/trials/|^migrations/"
    r"|rlhf/task/(array_tree|config|data|dataflow|language_models|model|queries|worker_config|yaml_config)\.py$"
)
"""Called by users' code, or by our own trainer through their classes; tests/harness tests each public name."""
DECORATORS = ["@*router.*", "@*validator*", "@*serializer*", "@app.*", "@event.*", "@compiles*"]
BY_NAME = {
    "FakeDriver": "runs beside the real drivers in the contract test",
    "ReportResult": "Hydra loads it by its name, inside a task",
    "on_job_end": "Hydra calls it",
    "OptunaSearch": "the task of a search loads it by its name",
    "PageHook": "hatchling finds it by its base class",
    "connect_tcp": "httpcore calls it",
    "fetchmany": "SQLAlchemy calls it",
    "initialize": "hatchling calls it",
    "process_bind_param": "SQLAlchemy calls it",
    "process_result_value": "SQLAlchemy calls it",
    "is_quiet": "tests of the change feed wait for it",
    "sqlite_url": "tests and make_kept_folder open databases with it",
    "unarchive": "the command table composes its name",
    "upload": "the protocol of checkpoint storage; determined.core calls it",
}
LIBRARY_BASES = (asyncssh.SSHServer, asyncssh.SSHServerSession, asyncssh.SSHTCPSession, httpcore.AsyncNetworkBackend)
"""The methods of these classes are called by their libraries."""
COMMAND = re.compile(r'"[\w.{}]+:(\w+)"')


def unused() -> list[str]:
    """One line for each, with its place."""
    tables = [*Path("cli").rglob("*.py"), Path("master/determined_master/__main__.py")]
    commands = {name for path in tables for name in COMMAND.findall(path.read_text("utf-8"))}
    called = {name for base in LIBRARY_BASES for name in dir(base)}
    finder = vulture.Vulture(ignore_names=[*BY_NAME, *commands, *called], ignore_decorators=DECORATORS)
    finder.scavenge([*PATHS, *MORE_PATHS])
    return [
        f"{item.filename}:{item.first_lineno}: nothing uses {item.typ} {item.name}"
        for item in finder.get_unused_code(min_confidence=60)
        if item.typ in KINDS and not PUBLIC.search(Path(item.filename).relative_to(Path.cwd()).as_posix())
    ]


def main() -> int:
    found = unused()
    for line in found:
        print(line, file=sys.stderr)
    print(f"dead code: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
