"""Checkpoints in a bucket of a real store: paused, resumed, downloaded and removed, without exposing its keys."""

import subprocess
from collections.abc import Callable, Iterator

import pytest
from tests.support.live_cluster import LiveCluster, live_cluster, python
from tests.support.live_models import MODELS
from tests.support.live_trials import Experiment, create
from tests.support.object_stores import STORES, Store
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.budget(60, "stores checkpoints in buckets over kills")]
POLICY = {"save_experiment_best": 2, "save_trial_best": 1, "save_trial_latest": 2}


@pytest.fixture(
    scope="module", params=["s3", *(pytest.param(kind, marks=pytest.mark.long) for kind in STORES if kind != "s3")]
)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with STORES[request.param]() as created:
        yield created


@pytest.fixture(scope="module")
def cluster(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.environ.items():
            patch.setenv(name, value)  # for the master
        with live_cluster(
            tmp_path_factory.mktemp("buckets"), slots=1, is_warm=True, checkpoint_buckets=store.url
        ) as created:
            yield created


def started(cluster: LiveCluster, store: Store, tmp_path, **changes) -> Experiment:
    storage = store.config | changes.pop("policy", {})
    variables = store.environment_variables
    return create(cluster, MODELS["digits"], tmp_path, checkpoint_storage=storage, variables=variables, **changes)


def det(cluster: LiveCluster, *words: str) -> str:
    credentials = {
        "DET_MASTER": cluster.url,
        "DET_USER": "admin",
        "DET_PASS": (cluster.data / "password").read_text().strip(),
    }
    argv = python("determined_cli", *words)
    done = subprocess.run(
        argv, env=cluster.environment | credentials, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long  # tests/contract/test_storage.py stores and restores on each of them
def test_a_trial_is_paused_and_resumes_from_its_bucket(
    cluster: LiveCluster, store: Store, tmp_path, same_as_straight: Callable[[Experiment], None]
):
    experiment = started(cluster, store, tmp_path, gates=("train-17",))
    experiment.at_gate("train-17")
    experiment.pause()
    uuid = next(iter(listed(experiment)))
    assert {key.rpartition("/")[2] for key in store.objects() if uuid in key} >= {"metadata.json", ".hashes.json"}
    experiment.do("activate")
    same_as_straight(experiment)
    assert {report["trialRunId"] for report in experiment.reports("training")} == {1, 2}
    newest = next(iter(listed(experiment)))
    assert newest in det(cluster, "experiment", "list-checkpoints", str(experiment.id))
    det(cluster, "checkpoint", "download", newest, "-o", str(tmp_path / "downloaded"))
    described = det(cluster, "checkpoint", "describe", newest)
    for name in ("metadata.json", "load_data.json"):
        assert (tmp_path / "downloaded" / name).is_file()
        assert name in described
    det(cluster, "checkpoint", "rm", newest, "--yes")
    assert not [key for key in store.objects() if newest in key]
    assert_no_key(cluster, store, experiment)


def assert_no_key(cluster: LiveCluster, store: Store, experiment: Experiment) -> None:
    """Checks that no answer, log line or log file contains a key of the store."""
    secrets = [store.config[name] for name in ("secret_key", "connection_string") if name in store.config]
    texts = [
        "\n".join(experiment.log),
        det(cluster, "experiment", "config", str(experiment.id)),
        det(cluster, "experiment", "describe", str(experiment.id), "--json"),
        *(path.read_text(errors="replace") for path in cluster.folder.glob("*.log")),
    ]
    for secret in secrets:
        assert not [text for text in texts if secret in text]


@pytest.mark.long  # test_retention.py kills a master between the same two steps
def test_a_master_killed_at_the_end_of_an_experiment_keeps_what_the_policy_says(
    cluster: LiveCluster, store: Store, tmp_path
):
    experiment = started(cluster, store, tmp_path, policy=POLICY, min_checkpoint_period={"batches": 4})
    before = wait_until(lambda: len(listed(experiment)) >= 6 and listed(experiment), what="six checkpoints")
    wait_until(lambda: experiment.state == "COMPLETED", what="its end")
    cluster.kill_master()
    cluster.start_master()
    remaining = wait_until(lambda: is_settled(experiment, store) and listed(experiment), what="the policy is applied")
    assert sorted(remaining.values())[-2:] == sorted({*before.values(), *remaining.values()})[-2:]  # the newest two
    assert 2 <= len(remaining) <= 4


def test_a_bucket_that_does_not_exist_ends_the_trial_before_it_trains(cluster: LiveCluster, store: Store, tmp_path):
    if store.config["type"] != "s3":
        pytest.skip("shown on S3; the sentence of the other services is their own")
    experiment = started(cluster, store, tmp_path, policy={"bucket": "somebody-elses"}, max_restarts=0)
    experiment.ended("ERROR")
    message = "cannot write to checkpoint storage s3://somebody-elses/lab/runs: it does not exist"
    assert any(message in line for line in experiment.log)
    assert experiment.reports("training") == []


def listed(experiment: Experiment) -> dict[str, int]:
    """Returns the batches of completed checkpoints by id, newest first."""
    path = f"/api/v1/trials/{experiment.trial_id}/checkpoints"
    rows = experiment.cluster.session.get(path, {"states": ["STATE_COMPLETED"]})["checkpoints"]
    steps = {row["uuid"]: int(row["metadata"]["steps_completed"]) for row in rows}
    return dict(sorted(steps.items(), key=lambda item: -item[1]))


def is_settled(experiment: Experiment, store: Store) -> bool:
    events = experiment.cluster.session.get("/detent/events", {"kind": "checkpoints_deleted"})["events"]
    chosen = any(event["targetId"] == str(experiment.id) for event in events)
    path = f"/api/v1/trials/{experiment.trial_id}/checkpoints"
    uuids = {row["uuid"] for row in experiment.cluster.session.get(path)["checkpoints"]}
    present = {part for key in store.objects() for part in key.split("/") if part in uuids}
    return chosen and present == set(listed(experiment))
