"""SITE.yaml for jobs of Slurm: what the launcher gets, what the project keeps, and mistakes with their places."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from tests.workflows.hydra.compositions import composition
from tests.workflows.hydra.conftest import Det

from determined.errors import ConfigError
from determined_workflows import site_profile
from determined_workflows.hydra import composition as compositions
from determined_workflows.hydra import site_settings
from determined_workflows.hydra.composition import Composition
from determined_workflows.site_profile import SiteProfile

DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("partition", "qos", "account", "comment", "gres", "mem_gb", "gpus_per_node", "setup")),
    "cpus_per_task": None,
    "name": "train",
    "nodes": 1,
    "timeout_min": 60,
    "additional_parameters": {},
}
"""Keys of the launcher with its defaults."""
SETUP = "++hydra.launcher.setup"
OTHERS = "++hydra.launcher.additional_parameters"


def composed(set_by: dict[str, str] | None = None, lines: list[str] | None = None, **launcher: Any) -> Composition:
    """Returns a composition whose configuration sets ``launcher``, or what ``set_by`` says of a key, and ``setup``."""
    keys = dict.fromkeys(launcher, "configuration") | (set_by or {})
    return composition(Path("/p"), launcher=DEFAULTS | launcher, launcher_keys=keys, launcher_setup=lines)


def overrides(found: Composition, **site: Any) -> list[str]:
    return site_settings.of(SiteProfile(Path("/etc/SITE.yaml"), **site), found).overrides


def value_of(override: str) -> Any:
    """Returns the value of an override as Hydra reads it."""
    return OverridesParser.create().parse_override(override).value()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"partition": "gpu", "qos": "high", "account": "lab"}, ["partition=gpu", "qos=high", "account=lab"]),
        ({"job-name": "it's 1,2"}, ["name='it\\'s 1,2'"]),
        ({"nodes": "2", "cpus-per-task": "04"}, ["nodes=2", "cpus_per_task=4"]),
        ({"time": "1-02:00:00"}, ["timeout_min=1560"]),
        ({"qos": "5"}, ["qos='5'"]),
    ],
)
def test_an_option_with_a_key_of_its_own_replaces_a_default_of_the_launcher(
    options: dict[str, str], expected: list[str]
) -> None:
    assert overrides(composed(), sbatch=options) == [f"hydra.launcher.{each}" for each in expected]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mail-type": "END,FAIL", "exclusive": None}, {"mail_type": "END,FAIL", "exclusive": True}),
        ({"nice": "5", "mem": "16G"}, {"nice": "5", "mem": "16G"}),
        # The launcher's keys take whole numbers.
        ({"nodes": "1-2", "gpus-per-node": "a100:2"}, {"nodes": "1-2", "gpus_per_node": "a100:2"}),
        ({"time": "UNLIMITED"}, {"time": "UNLIMITED"}),
        # A key that this version of the launcher does not have.
        ({"constraint": "x86"}, {"constraint": "x86"}),
    ],
)
def test_an_option_without_a_key_of_its_own_is_an_additional_parameter(
    options: dict[str, str | None], expected: dict[str, Any]
) -> None:
    (override,) = overrides(composed(), sbatch=options)
    assert override.partition("=")[0] == OTHERS
    assert value_of(override) == expected


@pytest.mark.parametrize(
    ("found", "option"),
    [
        (composed(qos="low"), {"qos": "high"}),
        (composed(timeout_min=60), {"time": "30"}),
        (composed({"qos": "override"}), {"qos": "high"}),
        (composed(additional_parameters={"mail-type": "END"}), {"mail-type": "NONE"}),
        (composed(additional_parameters={"mail_type": "END"}), {"mail-type": "NONE"}),
        (composed(mem_gb=4), {"mem-per-gpu": "8G"}),
        (composed(gpus_per_node=2), {"gres": "gpu:1"}),
        (composed(), {"signal": "USR1@5"}),
        (composed(), {"open-mode": "truncate"}),
    ],
)
def test_what_the_project_or_its_launcher_sets_is_kept(found: Composition, option: dict[str, str]) -> None:
    assert overrides(found, sbatch=option) == []
    (name,) = option
    assert overrides(composed(), sbatch=option) or name in ("signal", "open-mode")


def test_a_key_without_a_value_in_a_file_is_not_set_by_the_project() -> None:
    assert overrides(composed(qos=None), sbatch={"qos": "high"}) == ["hydra.launcher.qos=high"]


def test_lines_and_variables_of_the_site_come_before_the_lines_of_the_project() -> None:
    found = composed(lines=["export B=${hydra.job.num}"])
    (override,) = overrides(found, setup=("module load cuda", "a\nb"), environment={"NCCL_DEBUG": "a b"})
    name, _, value = override.partition("=")
    assert name == SETUP
    assert value_of(override) == [
        *("# From /etc/SITE.yaml.", "module load cuda", "a", "b", "export NCCL_DEBUG='a b'", "# From the project."),
        "export B=${hydra.job.num}",
    ]
    assert "'export B=${hydra.job.num}'" in value


@pytest.mark.parametrize(
    "text", ["${B}", r"\${B} \n", """a'b"c${""", "$B `x` $(x)", "\\", "\\\\'", "ü, [1] {a: b}", "", "true"]
)
def test_a_line_and_a_variable_reach_bash_unchanged_and_hydra_finds_no_reference(text: str) -> None:
    heredoc = ("cat <<'END'", text, "END")
    (override,) = overrides(composed(), setup=heredoc, environment={"VALUE": text})
    lines = value_of(override)
    assert not [line for line in lines if "${" in line]
    script = "\n".join([*lines, 'printf "%s" "$VALUE"'])
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env={})
    assert (done.stdout, done.stderr) == (f"{text}\n{text}", "")


def test_a_setup_that_cannot_be_resolved_is_refused_with_what_to_do() -> None:
    found = composed(setup="${lines}")
    assert overrides(found, sbatch={"qos": "high"}) == ["hydra.launcher.qos=high"]
    with pytest.raises(ConfigError, match=r"hydra.launcher.setup is \$\{lines\}, .* write it as a list"):
        overrides(found, setup=("true",))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("output: x", "--output cannot be set for det hydra: the launcher reads the output"),
        ("array: 1-3", "--array cannot be set for det hydra: the launcher makes one"),
        ("comment: ${USER}", "--comment=${USER}: sbatch replaces no variables"),
    ],
)
def test_an_option_that_the_launcher_cannot_take_is_named_with_its_place(
    line: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "SITE.yaml"
    path.write_text(f"setup: []\nsbatch:\n  qos: high\n  {line}\n")
    with pytest.raises(ConfigError) as refused:
        site_settings.of(site_profile.read(path), composed())
    assert str(refused.value).startswith(f"{path}:4:3: {problem}")


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        ({}, None),
        ({"scratch": "/scratch"}, None),
        ({"setup": ("true",)}, "/etc/SITE.yaml gives the jobs of Slurm 1 set-up line"),
        (
            {"setup": ("a", "b"), "environment": {"KEY": "secret"}, "sbatch": {"account": "lab", "exclusive": None}},
            "/etc/SITE.yaml gives the jobs of Slurm 2 set-up lines, KEY, account=lab, exclusive",
        ),
        (
            {"sbatch": {"qos": "high", "signal": "9"}},
            "/etc/SITE.yaml gives the jobs of Slurm nothing; qos, signal: as the project or its launcher says",
        ),
    ],
)
def test_the_summary_names_what_is_taken_and_what_is_kept(site: dict[str, Any], expected: str | None) -> None:
    assert site_settings.of(SiteProfile(Path("/etc/SITE.yaml"), **site), composed(qos="low")).summary == expected


STORED = """
from hydra_plugins.hydra_submitit_launcher.config import SlurmQueueConf
from hydra.core.config_store import ConfigStore
ConfigStore.instance().store(group="hydra/launcher", name="stored", node=SlurmQueueConf(qos="low"))
"""


@pytest.mark.budget(15, "composes real Hydra projects")
def test_the_composition_tells_what_the_project_sets_from_defaults_of_the_launcher(project: Path) -> None:
    def keys(*words: str) -> dict[str, str]:
        return dict(compositions.compose(Path("scripts/train.py"), words).launcher_keys)

    assert keys("hydra/launcher=submitit_slurm") == {}
    own = ("_target_", "gpus_per_node", "nodes", "cpus_per_task", "partition", "timeout_min", "setup")
    words = ("hydra.launcher.nodes=1", "~hydra.launcher.setup", "+hydra.launcher.additional_parameters={}")
    assert keys("hydra/launcher=slurm_launcher", *words) == dict.fromkeys(own, "configuration") | dict.fromkeys(
        ("nodes", "setup", "additional_parameters"), "override"
    )
    script = project / "scripts" / "train.py"
    script.write_text(STORED + script.read_text())
    assert keys("hydra/launcher=stored")["qos"] == "configuration"


@pytest.fixture
def with_slurm(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the project, on a machine that has ``sbatch``."""
    (tmp_path / "sbatch").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("DET_SITE", raising=False)
    return project


@pytest.mark.budget(15, "composes and runs real Hydra projects")
def test_run_and_retry_on_slurm_print_what_the_site_gives_before_the_command(with_slurm: Path, det: Det) -> None:
    site = with_slurm / "SITE.yaml"
    site.write_text("sbatch: {qos: high, partition: gpu, job-name: lab}\nsetup: [module load cuda]\n")
    summary = f"{site} gives the jobs of Slurm 1 set-up line, qos=high, job-name=lab"
    summary += "; partition: as the project or its launcher says"
    code, out, err = det("run", "scripts/train.py", "--on", "slurm", "--dry-run")
    assert (code, summary in err.splitlines()) == (0, True), err
    assert "module load cuda" in out
    assert " ++hydra.launcher.name=lab '++hydra.launcher.additional_parameters={qos:high}' " in out
    assert "output=${hydra.sweep.dir}/.submitit/%j.out" in out
    code, _, err = det("run", "scripts/train.py", "--on", "local", "-m", "fail_at=1,2", "hydra.sweep.dir=sweep")
    assert (code, str(site) in err) == (1, False)
    for words in (("sweep",), ("sweep/0",)):
        code, out, err = det("retry", *words, "--on", "slurm", "--dry-run", "--new_overrides", "hydra.launcher.nodes=1")
        assert (code, summary in err.splitlines()) == (0, True), err
        lines = out.splitlines()
        assert ["={qos:high}" in line for line in lines] == [True] * (2 if words == ("sweep",) else 1)


@pytest.mark.budget(10, "composes a real Hydra project")
def test_the_flag_names_another_file_and_needs_slurm(with_slurm: Path, tmp_path: Path, det: Det) -> None:
    (with_slurm / "SITE.yaml").write_text("sbatch: {qos: high}\n")
    other = tmp_path / "other.yaml"
    other.write_text("sbatch:\n  qos: [1]\n")
    words = ("run", "scripts/train.py", "--dry-run", "--site", str(other), "--on")
    assert det(*words, "slurm") == (4, "", f"det: {other}:2:3: a text or a number is needed here\n")
    for target in ("local", "det"):
        assert det(*words, target) == (4, "", "det: --site needs --on slurm: only jobs of Slurm use SITE.yaml\n")
    code, _, err = det("run", "scripts/train.py", "--dry-run", "--site", "absent", "--on", "slurm")
    assert (code, err) == (4, "det: --site: there is no file absent\n")
