"""Options without effect on a target are named; those that would be obeyed nowhere are refused."""

from pathlib import Path
from typing import Any

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import settings, target_options
from determined_workflows.site_profile import SiteProfile


def check(target: str, site: SiteProfile = SiteProfile(), **flags: Any) -> list[str]:
    found, _ = settings.read(flags)
    return target_options.check(target, flags, found, site)


@pytest.mark.parametrize("target", ["local", "det"])
@pytest.mark.parametrize(
    ("name", "value", "flag"),
    [
        ("account", "me", "--account"),
        ("cpus", "4", "--cpus"),
        ("memory", "1G", "--mem"),
        ("gpu_type", "a100", "--gpu-type"),
        ("requeue", True, "--requeue"),
        ("build_here", True, "--build-here"),
    ],
)
def test_an_option_of_slurm_is_warned_about_elsewhere(target: str, name: str, value: Any, flag: str) -> None:
    (warning,) = check(target, **{name: value})
    assert warning.startswith(f"{flag} has no effect with --on {target}: ")
    assert check("slurm", **{name: value}) == []


@pytest.mark.parametrize(("name", "value"), [("time", "1:00"), ("partition", "gpus")])
def test_time_has_an_effect_here_and_partition_on_a_cluster(name: str, value: Any) -> None:
    warned = {target: bool(check(target, **{name: value})) for target in target_options.TARGETS}
    assert warned == {"slurm": False, "local": name == "partition", "det": name == "time"}


@pytest.mark.parametrize("target", target_options.TARGETS)
def test_flags_of_sweeps_are_warned_about_without_a_sweep(target: str) -> None:
    assert check(target, count="3") == ["--count has an effect with --job-type sweep only"]
    assert check(target, kind="sweep", gpus="0", count="3", sweep_id="ab") == []


@pytest.mark.parametrize("target", ["local", "det"])
def test_options_for_sbatch_are_refused_elsewhere(target: str) -> None:
    with pytest.raises(ConfigError, match=rf"--qos=high\) are for sbatch, and --on {target} does not use it"):
        check(target, sbatch_words=["--qos=high"])


@pytest.mark.parametrize(
    ("target", "flags", "sentence"),
    [
        ("local", {"kind": "distributed", "launcher": "torchrun", "nodes": "2"}, "--on local has this machine alone"),
        ("det", {"container": "a.sif"}, "environment.image=NAME"),
        ("slurm", {"searcher": "random"}, "--searcher has an effect with --on det only"),
        ("local", {"config": ["max_restarts=1"]}, "--config has an effect with --on det only"),
        ("slurm", {"paused": True}, "--paused has an effect with --on det only"),
    ],
)
def test_an_option_that_would_be_obeyed_nowhere_is_refused(target: str, flags: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check(target, **flags)
    assert sentence in raised.value.message


def test_parts_of_the_sites_profile_without_effect_are_named() -> None:
    site = SiteProfile(Path("SITE.yaml"), setup=("module load x",), sbatch={"qos": "high"})
    assert len(check("local", site)) == 1
    assert len(check("det", site)) == 2
    assert check("slurm", site) == []
