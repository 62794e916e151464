"""The Core API: ``with det.core.init() as core_context`` around any training script."""

from determined.core._checkpoint import CheckpointContext, DownloadMode, DummyCheckpointContext
from determined.core._cluster_info import ClusterInfo, TrialInfo, get_cluster_info
from determined.core._context import Context, TensorboardMode, init
from determined.core._distributed import DistributedContext, DummyDistributedContext
from determined.core._preempt import DummyPreemptContext, PreemptContext, PreemptMode
from determined.core._profiler import DummyProfilerContext, ProfilerContext
from determined.core._searcher import DummySearcherContext, SearcherContext, SearcherOperation, Unit
from determined.core._train import DummyTrainContext, EarlyExitReason, TrainContext

__all__ = [
    "CheckpointContext",
    "ClusterInfo",
    "Context",
    "DistributedContext",
    "DownloadMode",
    "DummyCheckpointContext",
    "DummyDistributedContext",
    "DummyPreemptContext",
    "DummyProfilerContext",
    "DummySearcherContext",
    "DummyTrainContext",
    "EarlyExitReason",
    "PreemptContext",
    "PreemptMode",
    "ProfilerContext",
    "SearcherContext",
    "SearcherOperation",
    "TensorboardMode",
    "TrainContext",
    "TrialInfo",
    "Unit",
    "get_cluster_info",
    "init",
]
