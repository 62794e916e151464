"""The generated reference covers flags, keys, settings, errors and names, and its examples are accepted."""

import re
import sys
from pathlib import Path

import pytest
from tests.harness.test_public_docstrings import FOR_USERS, PUBLIC

from determined.config import check

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from generate import command_line, experiment_config, rest_api, settings_pages  # noqa: E402  # the path is set above

_STORAGE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"}}
_BLOCK = re.compile(r"```\{code-block\} yaml\n\s*:caption: (\S+)\n\n(.*?)```", re.DOTALL)


def test_each_flag_of_each_command_is_in_the_reference():
    page = command_line.page()
    commands = list(command_line.commands())
    assert len(commands) > 80
    for words, verb in commands:
        assert words in page
        for flag in command_line.flags(verb):
            assert f"`{flag}`" in page, f"{words} {flag}"


def test_each_missing_command_of_determined_is_in_the_reference():
    page = command_line.page()
    missing = list(command_line.not_offered())
    assert len(missing) > 30
    assert [words for words, _instead in missing if f"| `{words}` |" not in page] == []


def test_each_key_of_the_configuration_is_in_the_reference():
    page = experiment_config.page()
    assert page.count("\n| `") > 80
    assert "| `searcher.max_concurrent_trials` |" in page


def test_a_key_without_an_explanation_fails_the_build(monkeypatch):
    monkeypatch.delitem(experiment_config.KEYS, "max_restarts")
    with pytest.raises(ValueError, match="explains nothing of max_restarts"):
        experiment_config.page()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("determined_agent.settings", "Settings"),
        ("determined_master.settings.settings", "Settings"),
        ("determined_master.settings.pool_settings", "PoolSettings"),
        ("determined_master.settings.pool_settings", "SchedulerSettings"),
        ("determined_master.settings.pool_settings", "ProviderSettings"),
    ],
)
def test_each_setting_is_explained(module, name):
    settings = getattr(__import__(module, fromlist=[name]), name)
    assert settings_pages.undocumented(settings) == []


def test_each_error_code_is_explained():
    text = (DOCS / "reference" / "error-codes.md").read_text(encoding="utf-8")
    sources = (DOCS.parent / "harness" / "determined" / "config").glob("*.py")
    used = {code for path in sources for code in re.findall(r'"([EW]\d{3})"', path.read_text(encoding="utf-8"))}
    assert used
    assert {code for code in used if f"| `{code}` |" not in text} == set()


def test_each_operation_is_in_the_reference():
    openapi = rest_api.document()
    page = rest_api.render(openapi)
    assert len(openapi["paths"]) > 100
    for path, operations in openapi["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}`" in page


def test_each_public_name_is_in_the_python_reference():
    text = (DOCS / "reference" / "python-api.md").read_text(encoding="utf-8")
    for module in FOR_USERS:
        if module.startswith(("determined.storage", "determined.pytorch.samplers")):
            continue
        for name in PUBLIC[module].split():
            if name.startswith("Dummy") or name in ("core", "pytorch", "deepspeed", "samplers", "LOG_FORMAT"):
                continue
            short = name in ("ClusterInfo", "TrialInfo", "get_cluster_info") and module == "determined.core"
            assert re.search(rf":: {re.escape('determined' if short else module)}\.{name}\n", text), f"{module}.{name}"


def test_the_documentation_has_configurations():
    assert sum(len(_BLOCK.findall(path.read_text(encoding="utf-8"))) for path in DOCS.rglob("*.md")) > 30


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_configurations_in_the_documentation_are_accepted(path):
    for name, text in _BLOCK.findall(path.read_text(encoding="utf-8")):
        # The grid of `det runner`, the parts of a Hydra project and the files of `det batch`. Other tests follow these pages.
        if name == "params.yaml" or name.startswith(("configs/", "hpc_files/")):
            continue
        lines = text.splitlines()
        indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        checked = check("\n".join(line[indent:] for line in lines), name=name, defaults=[_STORAGE])
        assert not [diagnostic for diagnostic in checked.diagnostics if diagnostic.severity == "error"], (
            checked.render()
        )
