"""The start page of the documentation: every page of each folder is found from it, how-to pages by what a reader wants to do."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "index.md").read_text(encoding="utf-8")
HOW_TO = TEXT[TEXT.index("## How to\n") : TEXT.index("## Look up\n")]
LINE = re.compile(r"\* \[[^\]]+\]\(how-to/([\w-]+)\.md\): \S.{8,}")
TOCTREES = [block.split("\n\n")[1].split() for block in re.findall(r"```\{toctree\}\n(.*?)```", TEXT, re.DOTALL)]


def test_every_how_to_page_is_listed_once_under_a_task_with_a_line_about_it() -> None:
    tasks = HOW_TO.partition("```{toctree}")[0].split("### ")[1:]
    listed = [name for task in tasks for name in LINE.findall(task)]
    assert sorted(listed) == sorted(page.stem for page in (DOCS / "how-to").glob("*.md"))
    bullets = sum(line.startswith("* ") for line in HOW_TO.splitlines())
    assert bullets == len(listed)  # no line has another form


def test_the_sidebar_has_the_tasks_of_the_list_in_its_order() -> None:
    lists, _, trees = HOW_TO.partition("```{toctree}")
    tasks = [(task.partition("\n")[0], LINE.findall(task)) for task in lists.split("### ")[1:]]
    captions = re.findall(r":caption: (.+)\n", trees)
    pages = [[name.removeprefix("how-to/") for name in tree] for tree in TOCTREES if tree[0].startswith("how-to/")]
    assert list(zip(captions, pages, strict=True)) == tasks


def test_every_page_of_the_documentation_is_in_one_table_of_contents() -> None:
    named = [entry for tree in TOCTREES for entry in tree]
    globs = tuple(entry.removesuffix("*") for entry in named if entry.endswith("/*"))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md") if "_build" not in page.parts}
    loose = {page for page in pages if not page.startswith(globs)} - {"index"}
    assert loose == {entry for entry in named if not entry.endswith("/*") and (DOCS / f"{entry}.md").exists()}
    assert len(named) == len(set(named))
