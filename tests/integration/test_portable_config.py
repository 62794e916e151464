"""Configurations of this cluster can be submitted to a real Determined 0.38, and to this cluster again."""

import json
from typing import Any

import pytest
from tests.support.cluster import Cluster

FIELDS_OF_DETERMINED = {
    "": "bind_mounts checkpoint_policy checkpoint_storage data debug description entrypoint environment hyperparameters "
    "integrations labels log_policies max_restarts min_checkpoint_period min_validation_period name optimizations pbs "
    "perform_initial_validation preemption_timeout profiling project records_per_epoch reproducibility resources "
    "retention_policy scheduling_unit searcher slurm workspace",
    "checkpoint_storage": "host_path propagation save_experiment_best save_trial_best save_trial_latest storage_path type",
    "environment": "add_capabilities drop_capabilities environment_variables force_pull_image image pod_spec ports "
    "proxy_ports registry_auth",
    "log_policies": "name pattern",
    "optimizations": "aggregation_frequency auto_tune_tensor_fusion average_aggregated_gradients "
    "average_training_metrics grad_updates_size_file gradient_compression mixed_precision tensor_fusion_cycle_time "
    "tensor_fusion_threshold",
    "pbs": "",
    "profiling": "begin_on_batch enabled end_after_batch sync_timings",
    "reproducibility": "experiment_seed",
    "resources": "devices is_single_node max_slots native_parallel priority resource_pool shm_size slots_per_trial weight",
    "slurm": "",
}
"""The fields in the configurations that a real 0.38.1 answered, by section."""
SEARCHERS = {
    "single": "metric name smaller_is_better source_checkpoint_uuid source_trial_id",
    "random": "metric name smaller_is_better source_checkpoint_uuid source_trial_id max_trials max_concurrent_trials",
    "grid": "metric name smaller_is_better source_checkpoint_uuid source_trial_id max_concurrent_trials",
    "adaptive_asha": "metric name smaller_is_better source_checkpoint_uuid source_trial_id max_trials "
    "max_concurrent_trials bracket_rungs divisor max_rungs max_time mode time_metric",
}
PLAIN = """
name: mnist
description: a plain configuration
labels: [a]
entrypoint: python3 model_def.py
hyperparameters:
  learning_rate: {type: log, minval: -4, maxval: -1, base: 10, count: 2}
  dense: 128
searcher: {name: NAME, metric: validation_loss, smaller_is_better: true MORE}
resources: {slots_per_trial: 1}
environment: {environment_variables: [A=b], image: determinedai/pytorch-ngc:0.38.1}
bind_mounts: [{host_path: /data, container_path: /data, read_only: true}]
log_policies: [{pattern: .*nan.*, action: cancel_retries}]
min_validation_period: {batches: 100}
max_restarts: 2
"""
MORE = {
    "random": ", max_trials: 2",
    "adaptive_asha": ", max_trials: 2, time_metric: batches, max_time: 100, max_rungs: 1",
}


def plain(searcher: str) -> str:
    return PLAIN.replace("NAME", searcher).replace(" MORE", MORE.get(searcher, ""))


def unknown(config: dict[str, Any]) -> list[str]:
    """Returns the fields that Determined does not know."""
    known = {**FIELDS_OF_DETERMINED, "searcher": SEARCHERS[config["searcher"]["name"]]}
    known["log_policies"] += " action"  # a policy of the configuration has an action
    fields = []
    for section, names in known.items():
        parts = config if section == "" else config.get(section, {})
        for part in parts if isinstance(parts, list) else [parts]:
            fields += [f"{section}.{name}" for name in part if name not in names.split()]
    return fields


async def config_of(cluster: Cluster, experiment: int) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["config"]
    return found


@pytest.mark.parametrize("searcher", SEARCHERS)
async def test_a_plain_configuration_has_no_field_that_determined_does_not_know(
    cluster: Cluster, searcher: str
) -> None:
    experiment = await cluster.create(plain(searcher), activate=False)
    config = await config_of(cluster, experiment)
    assert unknown(config) == []
    assert [policy for policy in config["log_policies"] if "action" in policy] == [
        {"pattern": ".*nan.*", "action": "cancel_retries"}
    ]


@pytest.mark.parametrize("searcher", SEARCHERS)
async def test_a_configuration_that_is_submitted_again_gives_the_same_experiment(
    cluster: Cluster, searcher: str
) -> None:
    first = await cluster.create(plain(searcher), activate=False)
    config = await config_of(cluster, first)
    again = await cluster.create(json.dumps(config), activate=False)
    assert await config_of(cluster, again) == config
    texts = [(await cluster.get(f"/detent/experiments/{each}/config"))["text"] for each in (first, again)]
    assert texts[0] == texts[1]


async def test_fields_of_detent_that_are_set_stay_in_the_configuration(cluster: Cluster) -> None:
    ours = "health: {nan: stop}\nmetric_goals: {acc: maximize}\n"
    config = await config_of(cluster, await cluster.create(plain("single") + ours, activate=False))
    assert (config["health"], config["metric_goals"]) == ({"nan": "stop"}, {"acc": "maximize"})
