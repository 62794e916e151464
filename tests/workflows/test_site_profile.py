"""SITE.yaml: its content, its place, and mistakes with their lines."""

from pathlib import Path

import pytest

from determined.errors import ConfigError
from determined_workflows import site_profile

TEXT = """\
setup:
  - module load cuda
sbatch: {qos: normal, exclusive: true, nice: 5, requeue: false}
scratch: /scratch/me
environment:
  NCCL_DEBUG: WARN
  COUNT: 3
"""


def test_a_profile_has_lines_options_folders_and_variables(tmp_path: Path) -> None:
    path = tmp_path / "SITE.yaml"
    path.write_text(TEXT)
    found = site_profile.read(path)
    assert found.setup == ("module load cuda",)
    assert found.sbatch == {"qos": "normal", "exclusive": None, "nice": "5"}
    assert found.scratch == "/scratch/me"
    assert found.environment == {"NCCL_DEBUG": "WARN", "COUNT": "3"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("set-up: []\n", 'SITE.yaml:1:1: unknown key "set-up"; did you mean "setup"?'),
        ("a: 1\n", 'SITE.yaml:1:1: unknown key "a"; valid: setup, sbatch'),
        ("setup: 3\n", "SITE.yaml:1:1: setup is a list of lines"),
        ("sbatch: [x]\n", "SITE.yaml:1:1: sbatch is a mapping"),
        ("scratch: /a\nenvironment:\n  A B: 1\n", 'SITE.yaml:3:3: "A B" is no name of a variable'),
        ("environment:\n  A: [1]\n", "SITE.yaml:2:3: a text or a number is needed here"),
        ("setup: [\n", "SITE.yaml:2:1: "),
        ("- a\n", "SITE.yaml:1:1: "),
        ("setup: &all [*all]\n", "SITE.yaml:1:8: this value contains itself, by an alias"),
        (f"setup: {'[' * 5000}{']' * 5000}\n", "SITE.yaml is nested too deeply"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "SITE.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        site_profile.read(path)
    assert problem in str(refused.value)


def test_the_first_profile_of_flag_variable_project_and_user_counts(tmp_path: Path) -> None:
    paths = [tmp_path / name / "SITE.yaml" for name in ("flag", "variable", "project", "home/detent")]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text(f"scratch: {path.parent}\n")
    environ = {"DET_SITE": str(paths[1]), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    assert site_profile.find(str(paths[0]), tmp_path / "project", environ).source == paths[0]
    assert site_profile.find(None, tmp_path / "project", environ).source == paths[1]
    del environ["DET_SITE"]
    assert site_profile.find(None, tmp_path / "project", environ).source == paths[2]
    assert site_profile.find(None, tmp_path / "absent", environ).source == paths[3]


def test_a_named_profile_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"DET_SITE: there is no file"):
        site_profile.find(None, tmp_path, {"DET_SITE": str(tmp_path / "absent")})
