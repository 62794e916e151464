"""Options of sbatch: their order, origins and refusals."""

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import sbatch_options
from determined_workflows.batch.settings import JobSettings, read


def texts(settings: JobSettings, *typed: str, site: dict[str, str | None] | None = None, **environ: str) -> list[str]:
    own = sbatch_options.of_job(settings, name="standard-p-x", output="/o/%j.out", tasks_per_node=1)
    return [option.text for option in sbatch_options.merge(own, site or {}, typed, environ, "SITE.yaml")]


def test_a_standard_job_has_the_options_of_the_document() -> None:
    settings, _ = read({"gpus": "1"})
    assert texts(settings) == [
        "--ntasks-per-node=1",
        "--job-name=standard-p-x",
        "--output=/o/%j.out",
        "--nodes=1",
        "--time=00-01:00:00",
        "--mem=10G",
        "--cpus-per-task=2",
        "--gres=gpu:1",
    ]


@pytest.mark.parametrize(
    ("flags", "typed", "site", "environ", "shown"),
    [
        ({}, (), {"time": "5"}, {}, "--time=5"),
        ({"time": "9"}, (), {"time": "5"}, {}, "--time=9"),
        ({"time": "9"}, (), {}, {"SBATCH_TIMELIMIT": "7"}, "--time=7"),
        ({"time": "9"}, ("-t", "8"), {}, {"SBATCH_TIMELIMIT": "7"}, "-t 8"),
        ({"time": "9"}, ("--time=8",), {"time": "5"}, {}, "--time=8"),
        ({}, (), {}, {"SBATCH_QOS": "high"}, "--qos=high"),
        ({}, ("--mail-type", "END"), {}, {}, "--mail-type END"),
        ({}, ("--exclusive",), {}, {}, "--exclusive"),
        ({"gpus": "2", "gpu_type": "v100l"}, (), {}, {}, "--gres=gpu:v100l:2"),
        ({"gpus": "2", "memory_per_gpu": "4G"}, (), {}, {}, "--mem-per-gpu=4G"),
        ({"requeue": True}, (), {}, {}, "--signal=USR1@90"),
        ({"requeue": True}, (), {}, {}, "--open-mode=append"),
    ],
)
def test_the_option_that_counts_is_shown(
    flags: dict[str, str], typed: tuple[str, ...], site: dict[str, str | None], environ: dict[str, str], shown: str
) -> None:
    found = texts(read(flags)[0], *typed, site=site, **environ)
    assert shown in found
    name = shown.lstrip("-").partition("=")[0].split()[0]
    assert len([text for text in found if text.startswith(f"--{name}")]) <= 1


def test_values_of_exported_variables_are_neither_shown_nor_written() -> None:
    own = sbatch_options.of_job(JobSettings(), name="x", output="/o", tasks_per_node=1)
    found = sbatch_options.merge(own, {}, (), {"SBATCH_EXPORT": "ALL,KEY=secret"}, "SITE.yaml")
    (export,) = [option for option in found if option.name == "export"]
    assert (export.text, export.is_for_script) == ("--export=ALL,KEY", False)


def test_variables_of_sbatch_that_det_batch_cannot_follow_are_not_passed_on() -> None:
    environ = {"SBATCH_WAIT": "1", "SBATCH_ARRAY_INX": "1-9", "SBATCH_ERROR": "x", "SBATCH_QOS": "high", "HOME": "/h"}
    assert sbatch_options.without_refused(environ) == {"SBATCH_QOS": "high", "HOME": "/h"}
    assert [option.name for option in sbatch_options.merge([], {}, (), environ, "SITE.yaml")] == ["qos"]


def test_an_option_replaces_the_one_that_slurm_does_not_take_beside_it() -> None:
    assert "--mem=10G" not in texts(JobSettings(), "--mem-per-cpu=1G")
    assert "--gres=gpu:1" not in texts(JobSettings(gpus=1), "--gpus-per-node=2")


@pytest.mark.parametrize("option", ["--comment=x", "--wrap=x", "-a", "-o", "--array=1-3", "-W", "--wait"])
def test_an_option_that_det_batch_relies_on_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="cannot be set here"):
        texts(JobSettings(), option, "1")


def test_a_word_that_is_no_option_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'"main\.py" is no option'):
        texts(JobSettings(), "main.py")


def test_tasks_that_differ_from_the_gpus_are_refused() -> None:
    with pytest.raises(ConfigError, match="one task for each GPU of a node, 2 here"):
        sbatch_options.check_tasks(sbatch_options.parse(["--ntasks-per-node=1"]), 2)
    sbatch_options.check_tasks(sbatch_options.parse(["--ntasks-per-node=2"]), 2)


@pytest.mark.parametrize(
    ("typed", "site", "environ", "origin"),
    [
        (["--time=banana"], {}, {}, "after --"),
        ([], {"time": "banana"}, {}, "SITE.yaml"),
        ([], {}, {"SBATCH_TIMELIMIT": "banana"}, "SBATCH_TIMELIMIT"),
    ],
)
def test_a_time_limit_that_slurm_does_not_understand_is_refused_with_its_origin(
    typed: list[str], site: dict[str, str | None], environ: dict[str, str], origin: str
) -> None:
    own = sbatch_options.of_job(JobSettings(), name="n", output="o", tasks_per_node=1)
    options = sbatch_options.merge(own, site, typed, environ, "SITE.yaml")
    with pytest.raises(ConfigError, match=rf"--time=banana \({origin}\) is no time limit"):
        sbatch_options.check_time(options)
