"""The page about users who do not trust each other: its settings are valid, and its refusals happen."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.agents import make_desired

from determined.config import check
from determined.link.run_folder import RunFolder
from determined_agent import settings as agent_settings
from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.host_access.access import ClusterFolders, HostAccess
from determined_master.settings import settings as master_settings
from determined_master.settings.read_settings import read_settings
from determined_master.tasks.container_settings import container_settings

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "users-who-do-not-trust-each-other.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```\{code-block\} (?:yaml|text)\n:caption: (\S+)\n\n(.*?)```", TEXT, re.DOTALL))
CONFIGURATIONS = sorted(name for name in BLOCKS if name.endswith(".yaml"))
SETTINGS = re.findall(r"`((?:agent|master)\.yaml)`[^\n]*:\n\n```yaml\n(.*?)```", TEXT, re.DOTALL)
FIRST, INFINIBAND, PROFILERS = (text for name, text in SETTINGS if name == "agent.yaml")
(MASTER,) = (text for name, text in SETTINGS if name == "master.yaml")
REFUSED = sorted(name.removesuffix(".txt") for name in BLOCKS if name.endswith(".txt"))
SETTINGS_TABLE = re.compile(r"\| (agent|master) setting \| default \| .*?\n\|[-|]+\n((?:\|.*\n)+)")


def agent_of(tmp_path: Path, text: str) -> agent_settings.Settings:
    file = tmp_path / "agent.yaml"
    file.write_text(text)
    return agent_settings.read_settings(["--config", str(file), "--data", str(tmp_path / "agent")], {})


def effective(name: str) -> dict[str, Any]:
    checked = check(
        BLOCKS[name],
        defaults=[{"checkpoint_storage": {"type": "shared_fs", "host_path": "/mnt/c"}}],
        has_containers=True,
    )
    assert checked.config is not None, checked.render()
    assert checked.diagnostics == (), checked.render()
    config: dict[str, Any] = checked.config.to_json()
    return config


def refusal(tmp_path: Path, agent: str, configuration: str) -> str:
    """Returns the reason why a container as root does not start, with a configuration and an agent of the page."""
    config = effective(configuration)
    storage = config["checkpoint_storage"]
    spec = make_desired(checkpoint_storage=storage, **container_settings(config)).spec
    assert spec is not None
    settings, folders = agent_of(tmp_path, agent), ClusterFolders(("/mnt/c",), "")
    try:
        HostAccess(settings, lambda: folders).check(ContainerPlan("c", spec, RunFolder(tmp_path)))
    except NotStarted as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize("text", [FIRST, INFINIBAND, PROFILERS])
def test_each_agent_yaml_of_the_page_is_read_by_the_agent(tmp_path: Path, text: str) -> None:
    assert agent_of(tmp_path, text).data == tmp_path / "agent"


def test_the_master_yaml_of_the_page_is_read_by_the_master(tmp_path: Path) -> None:
    (tmp_path / "master.yaml").write_text(MASTER)
    arguments = ["--config", str(tmp_path / "master.yaml"), "--data", str(tmp_path / "data")]
    assert read_settings(arguments, {}).storage_default["host_path"] == "/mnt/checkpoints"


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_each_configuration_of_the_page_is_accepted_by_the_master(name: str) -> None:
    assert effective(name)["entrypoint"] == "python3 train.py"


@pytest.mark.parametrize("name", REFUSED)
def test_each_refusal_of_the_page_happens_with_the_text_of_the_page(tmp_path: Path, name: str) -> None:
    if name == "refused-storage" and os.path.realpath("/var/run") != "/run":
        pytest.skip("/var/run of this machine is no link to /run")
    assert refusal(tmp_path, FIRST, f"{name}.yaml") == " ".join(BLOCKS[f"{name}.txt"].split())


@pytest.mark.parametrize(
    ("agent", "configuration", "devices"),
    [(INFINIBAND, "infiniband.yaml", 1), (PROFILERS, "profiled.yaml", 0)],
)
def test_the_settings_for_infiniband_and_profilers_allow_their_configurations(
    tmp_path: Path, agent: str, configuration: str, devices: int
) -> None:
    text = refusal(tmp_path, agent, configuration)
    # Only the device may be missing on the machine of the test.
    assert text in ("", "resources.devices[0].host_path: /dev/infiniband does not exist on this machine" * devices)
    assert "does not allow" in refusal(tmp_path, FIRST, configuration)


def test_each_default_of_the_page_is_that_of_the_code() -> None:
    rows: list[tuple[Callable[..., Any], str, str]] = []
    for kind, table in SETTINGS_TABLE.findall(TEXT):
        settings = agent_settings.Settings if kind == "agent" else master_settings.Settings
        rows += [
            (settings, *(cell.strip(" `") for cell in line.split("|")[1:3]))  # type: ignore[misc]
            for line in table.splitlines()
        ]
    assert len(rows) == 22
    for settings, name, default in rows:
        default_value = settings.model_fields[name].get_default(call_default_factory=True)  # type: ignore[attr-defined]
        documented = "" if default == "empty" else yaml.safe_load(default)
        assert (default_value or "") == ("" if documented in ("none", False) else documented), name
