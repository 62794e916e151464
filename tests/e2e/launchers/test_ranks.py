"""Two real ranks under each launcher without a cluster: preempted and resumed training ends with the same bits."""

import json
from pathlib import Path

import pytest
from tests.support import launchers

pytestmark = [pytest.mark.torch, pytest.mark.budget(120, "starts real launchers for many attempts")]

SCRIPT = str(Path(__file__).with_name("rank_attempts.py"))
STRAIGHT = {"preempt_at": None, "latest": None}


def attempts(launcher, folder, plan, *, size=2):
    """Returns the output of the chief and of the other ranks, attempt by attempt."""
    kind = "deepspeed" if launcher == "deepspeed" else "pytorch"
    request = json.dumps({"kind": kind, "store": str(folder / "store"), "attempts": plan})
    text = launchers.run(launcher, size, [SCRIPT, request], folder=folder)
    lines = [json.loads(line[3:]) for line in text.splitlines() if line.startswith("OUT")]
    ranks = [[line for line in lines if line["rank"] == rank] for rank in range(size)]
    assert [len(rank) for rank in ranks] == [len(plan)] * size, text
    return list(zip(*ranks, strict=True))


def rows(created):
    """Returns reports by group and step. Fails if one is reported twice."""
    reports = {}
    for chief, *_ in created:
        for group, step, metrics in chief["reports"]:
            assert (group, step) not in reports
            reports[group, step] = metrics
    return reports


def check(launcher, folder, moments, variants, *, end_under=None):
    """Runs each variant straight, then preempted at each moment, then to the end in new processes of another launcher."""
    plan = []
    for more in variants:
        plan.append({**STRAIGHT, **more})
        plan += [{**more, "preempt_at": at, "latest": "previous" if n else None} for n, at in enumerate(moments)]
    every = attempts(launcher, folder, plan)
    created = [every[begin : begin + 1 + len(moments)] for begin in range(0, len(every), 1 + len(moments))]
    ends = [
        {**more, "preempt_at": None, "latest": v[-1][0]["stored"]} for more, v in zip(variants, created, strict=True)
    ]
    for (straight, *parts), last in zip(created, attempts(end_under or launcher, folder, ends), strict=True):
        assert all(part[0]["acknowledged"] and part[0]["steps"] < 15 for part in parts)
        assert [rank["weights"] for rank in (*straight, *last)] == [straight[0]["weights"]] * 4
        assert rows([*parts, last]) == rows([straight])
        assert [step for group, step in rows([straight]) if group == "validation"] == [5, 10, 15]
    return [end["latest"] for end in ends]


# calls of should_preempt: one for each step but the last, and one for each of the three batches of a validation
INSIDE_AN_ACCUMULATION, INSIDE_A_VALIDATION = 3, 4


@launchers.needs("horovod")
@pytest.mark.long  # test_pause.py resumes under one launcher
@pytest.mark.parametrize(
    ("launcher", "other_launcher"), [("torch_distributed", "horovod"), ("horovod", "torch_distributed")]
)
def test_a_pytorch_trial_resumes_under_another_launcher_with_the_same_bits(tmp_path, launcher, other_launcher):
    """A checkpoint resumes under the other framework with the same bits, since it contains nothing specific to either."""
    (left,) = check(launcher, tmp_path, [INSIDE_AN_ACCUMULATION, INSIDE_A_VALIDATION], [{}], end_under=other_launcher)
    if launcher == "torch_distributed":
        # one slot can resume it too, with other bits
        ((alone,),) = attempts("plain", tmp_path, [{"preempt_at": None, "latest": left}], size=1)
        assert [step for group, step, _ in alone["reports"] if group == "validation"] == [5, 10, 15]


@launchers.needs("deepspeed")
@pytest.mark.parametrize("stage", [pytest.param(0, marks=pytest.mark.long), 1])  # tests/e2e pauses at stage 0
def test_deepspeed_engines_of_several_ranks_resume_with_the_same_bits(tmp_path, stage):
    check("deepspeed", tmp_path, [INSIDE_AN_ACCUMULATION, INSIDE_A_VALIDATION], [{"stage": stage}])
