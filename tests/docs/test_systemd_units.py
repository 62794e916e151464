"""The units for systemd: systemd accepts them, and they start our programs with existing settings."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from determined_agent.settings import Settings as AgentSettings
from determined_master.settings.settings import Settings as MasterSettings

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
SETTINGS = {"det-master": MasterSettings, "det-agent": AgentSettings}


def read(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return parser


def test_each_program_has_a_systemd_unit() -> None:
    assert [unit.stem for unit in UNITS] == ["det-agent", "det-master"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd-analyze")
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    file = tmp_path / unit.name
    file.write_text(unit.read_text().replace("/opt/detent/bin", str(Path(sys.executable).parent)))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_our_program_with_settings_that_exist(unit: Path) -> None:
    service = read(unit)["Service"]
    program, flag, file = service["ExecStart"].split()
    assert (Path(program).name, flag) == (unit.stem, "--config")
    assert (Path(sys.executable).parent / unit.stem).exists()
    name = re.fullmatch(r"DET_(?:MASTER|AGENT)_([A-Z_]+)=(/var/lib/[a-z-]+)", service["Environment"])
    assert name is not None
    assert name[1].lower() in SETTINGS[unit.stem].model_fields
    assert name[2] == f"/var/lib/{service['StateDirectory']}"
    documented = (ROOT / "docs" / "operations" / "lab-cluster.md").read_text()
    assert file in documented


def test_the_agents_unit_does_not_stop_its_tasks() -> None:
    (agent,) = [unit for unit in UNITS if unit.stem == "det-agent"]
    assert read(agent)["Service"]["KillMode"] == "process"
