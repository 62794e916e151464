"""Fails when a name that was retired (docs/glossary.md says which word replaced it) returns to the code."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MODULES = {
    "determined_launch": "attendance beside blame hang layer records stacks steps watching",
    "determined_agent": ("alone boot exits isolation lines memory namespace segments splitting task_start"),
    "determined_cli": "farewell machine nouns opening verbs",
    "determined.core": "_fetching _merge _star _together",
    "determined.pytorch": "_averaging _keeper _running _streams _work",
    "determined.config": "finding merging naming nodes rules scalars shapes source",
    "determined.context": "reading safety walking",
    "determined_master": "auth columns dependencies hints ingest master uncollected wire",
    "determined_master.agents": "endpoints link wire",
    "determined_master.allocations": "endpoints transitions wish",
    "determined_master.experiments": (
        "creating doing edit endpoints extensions listing origins outcome reading samples shown status submit told"
        " transitions verbs wire"
    ),
    "determined_master.logs": "counting endpoints follow page_rows pages paging rows wire",
    "determined_master.metrics": (
        "chunk_rows endpoints overtaken_rows packing plots points rows series streams thinning wire"
    ),
    "determined_master.trials": (
        "attempts doing endpoints facts history marks outcome past reading segments tasks transitions wire"
    ),
    "determined_master.users": "endpoints places preferences wire",
    "determined_master.web": "cookie edge feed guard patience prefix sign_in stream wire",
    "tests.support": "eventually lived_in many streams until",
    "bench": "filling played_agent programs",
}
"""Package → modules that it no longer has."""
IDENTIFIERS = frozenset(
    [
        "Alone",
        "Averaging",
        "Bury",
        "ByDDP",
        "ByHorovod",
        "ContainerTruth",
        "ContainerWish",
        "Dialect",
        "Edge",
        "Fate",
        "Gathering",
        "Hints",
        "Keeper",
        "Lane",
        "Listener",
        "NotYet",
        "Patience",
        "PlayedAgent",
        "SearchFactRow",
        "Shown",
        "Situation",
        "Star",
        "TheMaster",
        "TrainerOf",
        "Truth",
        "Try",
        "Upkeep",
        "Wish",
        "AT_ONCE",
        "LEAST",
        "LONGEST",
        "MOST",
        "SHOWN",
        "USUAL",
        "hints_of",
        "mark_heard",
        "wish_of",
    ]
)
"""Classes, functions, variables and constants; attributes and parts of longer names are not looked at."""
CONSTANT = re.compile(r"^_?(MOST|LEAST|LONGEST|USUAL|SHOWN)_|_AT_ONCE$")

PAGE = "webui/src/"
PAGE_MODULES = (
    "app/firstLook app/idle app/later app/rest format/gathered format/moment format/visible live/relay live/source"
)
"""Modules that the page no longer has, without their suffix."""
PAGE_EXPORTS = frozenset(
    ["firstLook", "gathered", "idle", "later", "moment", "relay", "rest", "sign", "source", "visible"]
)
PAGE_CONSTANT = re.compile(r"^(MOST|LEAST|LONGEST|USUAL|SHOWN|AT_ONCE)(_|$)")
PAGE_PHRASES = (
    "As at first",
    "Asked to",
    "Brought back",
    "Forget the",
    "Leave it",
    "Leave out",
    "Nothing by that name",
    "Signed in last",
    "Switch off",
    "Take away",
    "<th>May</th>",
    "not oneself",
    "to go on",
)
"""Texts of the screen that plainer ones replaced."""
DECLARED = re.compile(r"\b(export\s+)?(?:const|let|function|class|interface|type|enum)\s+(\w+)")


def retired_modules(files: list[str]) -> Iterator[str]:
    names = {f"{package}.{name}" for package, words in MODULES.items() for name in words.split()}
    roots = re.compile(r"^(launch|harness|master|agent|workflows|cli)/")
    for file in files:
        module = roots.sub("", file).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if module in names:
            yield f"{file}: the module name {module} is retired"


def retired_identifiers(file: str) -> Iterator[str]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        for name in names:
            if name in IDENTIFIERS or CONSTANT.search(name):
                yield f"{file}:{getattr(node, 'lineno', 0)}: the name {name} is retired"


def retired_on_page(file: str, text: str) -> Iterator[str]:
    """Yields what is retired in a TypeScript file; comments are not screen texts."""
    module = file.removeprefix(PAGE).partition(".")[0]
    if module in PAGE_MODULES.split():
        yield f"{file}: the module name {module} is retired"
    for number, line in enumerate(text.splitlines(), 1):
        for exported, name in DECLARED.findall(line):
            if PAGE_CONSTANT.search(name) or (exported and name in PAGE_EXPORTS):
                yield f"{file}:{number}: the name {name} is retired"
        if line.lstrip().startswith(("//", "*", "/*")):
            continue
        for phrase in PAGE_PHRASES:
            if phrase in line:
                yield f"{file}:{number}: the text {phrase!r} is retired"


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout.split()
    return [file for file in listed if Path(file).exists()]


def main() -> int:
    files = [file for file in tracked("*.py") if not file.startswith("migrations/versions/")]
    found = list(retired_modules(files))
    for file in tracked(f"{PAGE}*.ts", f"{PAGE}*.tsx"):
        found += retired_on_page(file, Path(file).read_text(encoding="utf-8"))
    for file in files:
        if not file.endswith("scripts/retired_names.py"):
            found += retired_identifiers(file)
    for line in found:
        print(line, file=sys.stderr)
    print(f"retired names: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
