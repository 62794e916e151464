"""Origins of the values of a configuration, and the check of a configuration's text."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.cluster import CONFIG, Cluster

from determined_master.api.queries.config_provenance import effective

FILE = """\
name: tiny
entrypoint: python3 run.py
labels: [b, a]
searcher:
  name: single
  metric: loss
  max_length: {batches: 5}
hyperparameters:
  lr: 0.1
  deep: {size: 3}
resources: {priority: 7}
"""


async def origins_of(cluster: Cluster) -> dict[str, tuple[str, int | None]]:
    """Returns origin and line in the file by path, and checks that each path is on its line."""
    config = await cluster.get("/detent/experiments/1/config")
    lines = config["text"].splitlines()
    for origin in config["origins"]:
        name = origin["path"].rsplit(".")[-1].split("[")[0]
        assert name in lines[origin["line"] - 1] or lines[origin["line"] - 1].lstrip().startswith("- "), origin
    return {o["path"]: (o["origin"], o["at"]) for o in config["origins"]}


async def test_each_value_names_its_origin_in_file_cluster_or_defaults(cluster: Cluster):
    await cluster.create(FILE)
    origins = await origins_of(cluster)
    assert origins["name"] == ("file", 1)
    assert origins["searcher.metric"] == ("file", 6)
    assert origins["searcher.smaller_is_better"] == ("default", None)
    assert origins["hyperparameters.lr.val"] == ("file", 9)
    assert origins["hyperparameters.deep.size.val"] == ("file", 10)
    assert origins["labels[0]"][0] == "file"
    assert origins["resources.priority"] == ("file", 11)
    assert origins["resources.resource_pool"] == ("cluster", None)
    assert origins["checkpoint_storage.host_path"] == ("cluster", None)
    assert origins["reproducibility.experiment_seed"] == ("cluster", None)
    assert origins["max_restarts"] == ("default", None)
    assert origins["log_policies[0].name"] == ("default", None)


async def test_a_value_changed_later_is_not_attributed_to_the_file(cluster: Cluster):
    await cluster.create(FILE)
    changes = {"name": "another", "description": "what it is", "labels": ["c", "a"], "resources": {"priority": 3}}
    assert (await cluster.client.patch("/api/v1/experiments/1", json=changes)).status_code == 200
    origins = await origins_of(cluster)
    assert origins["resources.priority"] == ("cluster", 11)
    assert origins["name"] == ("cluster", 1)
    assert origins["description"] == ("cluster", None)
    assert [origins[f"labels[{number}]"][0] for number in range(2)] == ["file", "cluster"]


async def test_the_submitted_text_is_returned_unchanged(cluster: Cluster):
    text = "# mine\n" + CONFIG
    await cluster.create(text)
    assert (await cluster.get("/detent/experiments/1/config"))["submitted"] == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.text(max_size=40))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_origins_of_any_configuration_lie_within_its_text(config: dict[str, Any], text: str):
    result = effective(config, text, {})
    assert all(1 <= each.line <= len(result.text.split("\n")) for each in result.origins)


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        (CONFIG + "scheduling_units: 3\n", 6, 1, "E203"),
        ("name: [", 2, 1, "E103"),
        ("searcher: {name: single, metric: loss}\n", 1, 1, "E202"),
    ],
)
async def test_a_check_names_line_and_column(cluster: Cluster, text: str, line: int, column: int, code: str):
    check = (await cluster.post("/detent/config/check", {"config": text})).json()
    assert check["ok"] is False
    first = check["diagnostics"][0]
    assert (first["line"], first["code"]) == (line, code)
    assert first["column"] >= column
    created = await cluster.post("/api/v1/experiments", {"config": text, "activate": True})
    assert created.status_code == 400


async def test_checking_a_valid_configuration_creates_nothing(cluster: Cluster):
    assert (await cluster.post("/detent/config/check", {"config": CONFIG})).json() == {"ok": True, "diagnostics": []}
    assert (await cluster.get("/api/v1/experiments"))["experiments"] == []
