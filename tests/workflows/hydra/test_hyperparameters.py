"""Values of compositions as hyperparameters, read back as the master's searcher reads them."""

from tests.workflows.hydra.compositions import job

from determined.config.hyperparameters import normalise
from determined.searcher.sampling import listed_point
from determined_workflows.hydra.hyperparameters import split


def points(*jobs):
    shared, own = split(jobs)
    return [listed_point(normalise(shared), values) for values in own]


def test_each_trial_has_all_values_of_its_job():
    jobs = [
        job(0, ["lr=1"], trainer__lr=1, trainer__steps=3, name="a", sizes=[1, 2]),
        job(1, ["lr=2"], trainer__lr=2, trainer__steps=3, name="a", sizes=[1, 2]),
    ]
    assert points(*jobs) == [
        {
            "trainer": {"lr": lr, "steps": 3},
            "name": "a",
            "sizes": [1, 2],
            "hydra": {"job": number, "overrides": f"lr={lr}"},
        }
        for number, lr in enumerate((1, 2))
    ]


def test_only_differing_values_are_listed_for_each_trial():
    _, own = split([job(0, lr=1, steps=3), job(1, lr=2, steps=3)])
    assert [sorted(values) for values in own] == [["hydra", "lr"], ["hydra", "lr"]]


def test_a_key_named_type_in_a_group_is_a_plain_value():
    first, second = points(
        job(0, model__type="int", model__size__width=8), job(1, model__type="log", model__size__width=8)
    )
    assert first["model"] == {"type": "int", "size": {"width": 8}}
    assert second["model"] == {"type": "log", "size": {"width": 8}}


def test_a_key_named_type_at_the_top_level_is_renamed():
    (first,) = points(job(0, type="mlp", width=8))
    assert (first["_type"], first["width"]) == ("mlp", 8)


def test_a_value_that_only_one_job_has_is_a_hyperparameter_of_its_trial_only():
    first, second = points(job(0, a=1), job(1, a=1, b=2))
    assert "b" not in first
    assert second["b"] == 2


def test_true_and_1_are_different_values():
    first, second = points(job(0, flag=True), job(1, flag=1))
    assert first["flag"] is True
    assert second["flag"] is not True
