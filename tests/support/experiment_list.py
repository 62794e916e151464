"""Searches of experiments by the request of the page, and experiments to be found."""

import json
from typing import Any

from tests.support.cluster import Cluster
from tests.support.columns import update_columns
from tests.support.makers import add_experiment, add_trial, effective


def field(column: str, operator: str, value: Any = None) -> dict[str, Any]:
    return {"kind": "field", "columnName": column, "operator": operator, "value": value}


def where(*children: dict[str, Any], conjunction: str = "and") -> str:
    group = {"kind": "group", "conjunction": conjunction, "children": list(children)}
    return json.dumps({"filterGroup": group})


async def search(cluster: Cluster, *children: dict[str, Any], **body: Any) -> list[int]:
    answer = await cluster.post("/detent/experiments/search", {"filter": where(*children), **body})
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["experiments"]]


async def add_three(cluster: Cluster) -> list[int]:
    """Adds experiments with the losses 0.5 and 0.1, and one without reports."""
    async with cluster.master.database.write() as session:
        created = []
        for name, labels, loss in (("Alpha", ["a", "b"], 0.5), ("beta", ["b"], 0.1), ("gamma_%", [], None)):
            row = await add_experiment(session, name=name, labels=labels, config=effective(lr=1))
            reports = [("validation", {"loss": loss})] if loss is not None else []
            await add_trial(session, row, hparams={"lr": loss, "opt": name.lower()}, reports=reports)
            created.append(row.id)
    await update_columns(cluster.master.indexer)
    return created
