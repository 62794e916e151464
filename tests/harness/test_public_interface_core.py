"""The Core API, storage, configuration and context, used by the names that user code imports."""

import io
import uuid
from pathlib import Path

import pytest

import determined as det
from determined import config, context, core, storage


def test_init_offers_one_context_for_each_part(master):
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as core_context:
        assert type(core_context) is core.Context
        assert type(core_context.train) is core.TrainContext
        assert type(core_context.checkpoint) is core.CheckpointContext
        assert type(core_context.preempt) is core.PreemptContext
        assert type(core_context.profiler) is core.ProfilerContext
        assert type(core_context.searcher) is core.SearcherContext
        assert type(core_context.distributed) is core.DummyDistributedContext
        assert core_context.info == det.get_cluster_info()


def test_the_cluster_information_has_public_types(master):
    info = det.get_cluster_info()
    assert type(info) is core.ClusterInfo is det.ClusterInfo
    assert type(info.trial) is core.TrialInfo is det.TrialInfo
    assert info.user_data == {}


def test_init_off_the_cluster_offers_a_dummy_for_each_part(monkeypatch, tmp_path):
    monkeypatch.delenv("DET_MASTER", raising=False)
    with core.init(checkpoint_storage=str(tmp_path)) as core_context:
        parts = (
            core_context.train,
            core_context.checkpoint,
            core_context.preempt,
            core_context.profiler,
            core_context.searcher,
            core_context.distributed,
        )
    assert [type(part) for part in parts] == [
        core.DummyTrainContext,
        core.DummyCheckpointContext,
        core.DummyPreemptContext,
        core.DummyProfilerContext,
        core.DummySearcherContext,
        core.DummyDistributedContext,
    ]


def test_a_trial_can_report_its_own_early_exit(master):
    with core.init() as core_context:
        core_context.train.report_early_exit(core.EarlyExitReason.INIT_INVALID_HP)
    assert master.bodies("/early_exit") == [{"reason": "EXITED_REASON_INIT_INVALID_HP"}]


def test_a_searcher_operation_reports_its_share_of_the_length_and_completes_once(master):
    with core.init() as core_context:
        searcher = core.SearcherContext({"searcher": {"max_length": {"epochs": 4}}}, core_context.train, is_chief=True)
        assert searcher.get_configured_units() is core.Unit.EPOCHS
        (operation,) = searcher.operations()
        assert type(operation) is core.SearcherOperation
        assert operation.length == 4
        operation.report_progress(1)
        operation.report_completed(0.5)
        with pytest.raises(RuntimeError, match="twice"):
            operation.report_completed(0.5)
    assert [body["progress"] for body in master.bodies("/progress")] == [0.25]


def test_only_the_chief_reports_progress_of_an_operation(master):
    with core.init() as core_context:
        operation = core.SearcherOperation(4, core_context.train, is_chief=False)
        with pytest.raises(RuntimeError, match="chief"):
            operation.report_progress(1)


def test_a_storage_of_a_configuration_keeps_a_checkpoint_until_it_is_deleted(tmp_path):
    checkpoint_storage: storage.Storage = storage.from_config(
        {"type": "directory", "container_path": str(tmp_path)}, {}
    )
    name = str(uuid.uuid4())
    with checkpoint_storage.store_path(name, lambda folder: None) as folder:
        (folder / "weights").write_bytes(b"1")
    assert checkpoint_storage.read(name, "weights") == b"1"
    assert checkpoint_storage.resources(name)["weights"] == 1
    checkpoint_storage.delete(name)
    assert not (tmp_path / name).exists()


def test_a_check_returns_a_configuration_or_diagnostics_with_positions():
    checked = config.check("entrypoint: 3")
    assert isinstance(checked, config.CheckResult)
    assert checked.config is None
    assert not checked.ok
    first = checked.diagnostics[0]
    assert isinstance(first, config.Diagnostic)
    assert (first.severity, first.line) == ("error", 1)


def test_a_packed_context_lists_its_entries_and_unpacks_to_the_same_files(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "model.py").write_text("WIDTH = 8\n")
    packed = context.pack(source)
    assert isinstance(packed, context.ContextArchive)
    assert packed.size == len("WIDTH = 8\n") <= context.LIMIT
    archive = tmp_path / "context.tar.zst"
    archive.write_bytes(packed.data)
    (entry,) = context.entries(archive)
    assert isinstance(entry, context.ArchiveEntry)
    assert (entry.path, entry.size) == ("model.py", packed.size)
    context.check_archive(io.BytesIO(packed.data), limit=1 << 20)
    with pytest.raises(context.ContextError):
        context.check_archive(io.BytesIO(packed.data), limit=10)
    context.unpack(packed.data, tmp_path / "target")
    assert Path(tmp_path, "target", "model.py").read_text() == "WIDTH = 8\n"
