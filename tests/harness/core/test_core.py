"""``core.init()`` against a small master on localhost."""

import json
import math
import os
import threading

import pytest
from tests.support.waiting import wait_until

import determined as det
from determined import core
from determined.client import preemption_watch
from determined.client.session import Session
from determined.errors import BadRequest


def test_reports_arrive_in_order_with_the_allocation_token(master):
    with core.init() as context:
        for step in range(1, 6):
            context.train.report_training_metrics(step, {"loss": math.nan, "high": math.inf, "plain": 1.5})
        context.train.report_validation_metrics(5, {"accuracy": 0.5})
        context.train.report_metrics("extra", 5, {"x": 1})
    bodies = master.bodies("/trials/3/metrics")
    assert [(body["group"], body["metrics"]["stepsCompleted"]) for body in bodies] == [
        *(("training", step) for step in range(1, 6)),
        ("validation", 5),
        ("extra", 5),
    ]
    first = bodies[0]["metrics"]
    assert first["metrics"]["avgMetrics"] == {"loss": "NaN", "high": "Infinity", "plain": 1.5}
    assert (first["trialId"], first["trialRunId"]) == (3, 2)
    headers = {name.lower(): value for name, value in master.calls[0][4].items()}
    assert headers["grpc-metadata-x-allocation-token"] == "Bearer secret"


def test_reports_wait_for_an_unavailable_master_and_arrive_once(master, tmp_path):
    tries = []

    def answer(body):
        tries.append(body["metrics"]["stepsCompleted"])
        return (503, {"message": "away"}) if len(tries) < 3 else (200, {})

    master.on("POST", "/metrics", answer)
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        context.train.report_training_metrics(2, {"loss": 1.0})
    assert tries == [1, 1, 1, 2]
    assert not (tmp_path / "spool" / "metrics.jsonl").exists()


def test_reports_that_an_earlier_process_left_are_sent_first(master, tmp_path):
    spool = tmp_path / "spool" / "metrics.jsonl"
    spool.parent.mkdir()
    spool.write_text(json.dumps({"metrics": {"stepsCompleted": 1}, "group": "training"}) + "\n")
    with core.init() as context:
        context.train.report_training_metrics(2, {"loss": 1.0})
    assert [body["metrics"]["stepsCompleted"] for body in master.bodies("/metrics")] == [1, 2]


def test_the_refusal_of_a_report_is_raised_at_the_next_call(master):
    master.on("POST", "/metrics", (400, {"error": {"code": 3, "reason": "InvalidArgument", "error": "other value"}}))
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        with pytest.raises(BadRequest, match="other value"):
            context.train.flush()


def test_a_report_of_a_fenced_attempt_calls_on_gone(master):
    master.on("POST", "/metrics", (403, {"error": {"code": 7, "reason": "PermissionDenied", "error": "fenced"}}))
    gone = threading.Event()
    texts = []
    from determined.client.session import Session
    from determined.core._metrics import Shipper

    def on_gone(text):
        texts.append(text)
        gone.set()

    shipper = Shipper(Session(master.url), 3, on_gone=on_gone)
    shipper.start()
    shipper.put({"metrics": {"stepsCompleted": 1}})
    assert gone.wait(30)
    shipper.close(deliver=False)
    assert "fenced" in texts[0]


def test_a_process_that_ends_at_once_does_not_ask_for_preemption(master, monkeypatch):
    monkeypatch.setattr(preemption_watch, "FIRST_ASK_SECONDS", 3600.0)
    with core.init():
        pass
    assert not [path for _, path, *_ in master.calls if "preemption" in path]
    with core.init() as context:
        assert not context.preempt.should_preempt()
    assert [path for _, path, *_ in master.calls if "preemption" in path]


def test_preemption_is_noticed_without_a_call_of_should_preempt(master):
    watcher = preemption_watch.Watcher(Session(master.url), "7.t.1", on_gone=pytest.fail)
    watcher.start()
    master.preempt.set()
    wait_until(lambda: watcher.preempted)
    watcher.close()


def test_preemption_is_acknowledged_once(master):
    with core.init() as context:
        assert not context.preempt.should_preempt()
        master.preempt.set()
        wait_until(lambda: context.preempt.should_preempt(auto_ack=False))
        assert not master.bodies("/ack_preemption")
        assert context.preempt.should_preempt()
        assert context.preempt.should_preempt()
    assert len(master.bodies("/ack_preemption")) == 1


def test_a_checkpoint_is_reported_after_the_metrics_before_it(master, tmp_path):
    with core.init() as context:
        context.train.report_training_metrics(4, {"loss": 1.0})
        with context.checkpoint.store_path({"steps_completed": 4, "note": "x"}) as (path, uuid):
            (path / "weights").write_bytes(b"12345")
            (path / "sub").mkdir()
            (path / "sub" / "more").write_bytes(b"1")
            assert not (tmp_path / "checkpoints" / uuid).exists()
        with context.checkpoint.restore_path(uuid) as path:
            assert (path / "weights").read_bytes() == b"12345"
    paths = [path for method, path, *_ in master.calls if method == "POST"]
    assert paths == ["/api/v1/trials/3/metrics", "/api/v1/checkpoints"]
    body = master.bodies("/checkpoints")[0]
    assert body["uuid"] == uuid
    assert body["state"] == "STATE_COMPLETED"
    assert body["metadata"] == {"steps_completed": 4, "note": "x"}
    sizes = {name: size for name, size in body["resources"].items() if name != "metadata.json"}
    assert sizes == {"weights": "5", "sub/": "0", "sub/more": "1"}


@pytest.mark.parametrize("metadata", [None, {}, {"steps_completed": 1.5}, {"steps_completed": True}])
def test_a_checkpoint_without_steps_completed_is_refused(master, metadata):
    with core.init() as context, pytest.raises(ValueError, match="steps_completed"):
        with context.checkpoint.store_path(metadata):
            pass


def test_a_failed_checkpoint_leaves_no_file_and_is_not_reported(master, tmp_path):
    with core.init() as context:
        with pytest.raises(ZeroDivisionError), context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "half").write_bytes(b"%d" % (1 // 0))
    assert os.listdir(tmp_path / "checkpoints") == []
    assert not master.bodies("/checkpoints")


def test_invalid_hyperparameters_are_reported_and_exit_with_code_0(master):
    with pytest.raises(SystemExit) as exit_, core.init():
        raise det.InvalidHP("too wide")
    assert exit_.value.code == 0
    assert master.bodies("/early_exit") == [{"reason": "EXITED_REASON_INVALID_HP"}]


def test_cluster_info_describes_the_task(master):
    info = det.get_cluster_info()
    assert info is not None
    assert (info.trial.trial_id, info.trial.hparams, info.slot_ids) == (3, {"lr": 0.1}, [0])
    assert info.container_addrs == ["127.0.0.1"]
    assert info.latest_checkpoint is None


def test_init_with_two_slots_requires_a_distributed_context(master, monkeypatch):
    monkeypatch.setenv("DET_SLOT_IDS", "[0, 1]")
    with pytest.raises(ValueError, match="from_torch_distributed"), core.init():
        pass


def test_the_profiler_reports_cpu_and_memory_without_steps(master):
    with core.init() as context:
        context.profiler.on(sampling_interval=0.1, samples_per_report=1)
        master.wait_for("/metrics", 2)
        context.profiler.off()
    groups = {body["group"] for body in master.bodies("/metrics")}
    assert groups == {"cpu", "memory"}
    assert all("stepsCompleted" not in body["metrics"] for body in master.bodies("/metrics"))


def test_samples_of_a_short_run_are_reported_at_its_end(master, monkeypatch):
    sampled = threading.Event()
    monkeypatch.setattr("determined.core._profiler._free_gigabytes", lambda: sampled.set() or 2.0)
    with core.init() as context:
        context.profiler.on(sampling_interval=0.1, samples_per_report=1000)
        assert sampled.wait(60)
        assert master.bodies("/metrics") == []
    reported = {body["group"]: body["metrics"]["metrics"]["avgMetrics"] for body in master.bodies("/metrics")}
    assert reported["memory"] == {"memory_free": 2.0}
    assert set(reported) == {"cpu", "memory"}


def test_off_the_cluster_reports_and_checkpoints_work_locally(monkeypatch, tmp_path):
    monkeypatch.delenv("DET_MASTER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert det.get_cluster_info() is None
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "x").write_bytes(b"1")
        assert context.checkpoint.get_metadata(uuid) == {"steps_completed": 1}
        assert not context.preempt.should_preempt()
        assert [op.length for op in context.searcher.operations()] == [1]
        context.checkpoint.delete(uuid)
    assert list((tmp_path / "determined" / "checkpoints").iterdir()) == []
