"""Makes test inputs from the recording of a proxy: ``python -m tests.support.keep_recording RECORDING FOLDER``.

The result has one sample for each form in which an operation was requested. Names of the recorded run become
placeholders, secrets are removed, and large values are truncated.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.wire_shape import operations

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
NAMES = {
    "experiments": "{experiment}",
    "experiment": "{experiment}",
    "trials": "{trial}",
    "runs": "{trial}",
    "tasks": "{task}",
    "allocations": "{allocation}",
    "resources": "{container}",
    "checkpoints": "{checkpoint}",
    "agents": "{agent}",
    "slots": "0",
    "users": "{user}",
    "workspaces": "1",
    "projects": "1",
    "labels": "blue",
}
KEYS = {
    "taskId": "{task}",
    "allocationId": "{allocation}",
    "containerId": "{container}",
    "agentId": "{agent}",
    "uuid": "{checkpoint}",
    "checkpointUuids": ["{checkpoint}"],
    "password": "{password}",
    "username": "{username}",
    "trialId": "{trial}",
    "runId": "{trial}",
    "trialRunId": "{run}",
    "trialIds": "{trial}",
    "experimentId": "{experiment}",
    "id": "{experiment}",
    "experimentIds": ["{experiment}"],
    "slotId": "0",
    "userId": "{user}",
    "nodeName": "{agent}",
}
LAST = ["PauseExperiment", "ActivateExperiment", "CancelExperiment", "KillTrial", "KillExperiment"]
LAST += ["ArchiveExperiment", "UnarchiveExperiment", "DeleteCheckpoints", "DeleteExperiment", "Logout"]


def main() -> None:
    source, folder = map(Path, sys.argv[1:])
    samples: dict[str, dict[str, Any]] = {}
    for line in source.read_text().splitlines():
        exchange = json.loads(line)
        operation = _operation(exchange["method"], urlsplit(exchange["target"]).path)
        if operation is None or not 200 <= exchange["status"] < 300:
            continue
        sample = _sample(exchange, *operation)
        samples.setdefault(json.dumps([sample["operation"], sorted(sample["query"]), _form(sample["body"])]), sample)
    ordered = sorted(samples.values(), key=lambda s: (_rank(s["operation"]), s["operation"]))
    folder.mkdir(exist_ok=True)
    (folder / f"{source.stem}.json").write_text(json.dumps(ordered, indent=1) + "\n")
    print(len(ordered), "samples")


def _rank(operation: str) -> int:
    return 1 + LAST.index(operation) if operation in LAST else 0


def _operation(method: str, path: str) -> tuple[str, str] | None:
    """Returns the name and path template of a request. A literal segment takes precedence over a named one."""
    best: tuple[int, str, str] | None = None
    for _tier, verb, template, name in operations():
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
        if verb == method and re.fullmatch(pattern, path):
            weight = template.count("{")
            if best is None or weight < best[0]:
                best = weight, name, template
    return best and (best[1], best[2])


def _sample(exchange: dict[str, Any], name: str, template: str) -> dict[str, Any]:
    url = urlsplit(exchange["target"])
    path, before = [], ""
    for part in template.split("/"):
        path.append(NAMES[before] if part.startswith("{") else part)
        if part == "{username}":
            path[-1] = "{username}"
        before = part
    query = [[k, KEYS.get(_camel(k), v) if "Ids" in _camel(k) else v] for k, v in parse_qsl(url.query)]
    return {
        "operation": name,
        "method": exchange["method"],
        "path": "/".join(path),
        "query": [[k, v if isinstance(v, str) else v[0]] for k, v in query],
        "content_type": exchange["content_type"],
        "body": _clean(json.loads(exchange["body"])) if exchange["body"] else None,
    }


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others)


def _clean(value: Any, key: str = "") -> Any:
    if _camel(key) in KEYS and value is not None:
        return KEYS[_camel(key)]
    if key == "config" and isinstance(value, str):
        return (
            "name: recorded\nentrypoint: python3 run.py\nsearcher: {name: single, metric: loss}\nhyperparameters: {}\n"
        )
    if isinstance(value, dict):
        return {k: _clean(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value[:2]]
    if key == "content" and isinstance(value, str):
        return "cHJpbnQoMSkK"
    if isinstance(value, str):
        return re.sub(UUID, "{uuid}", re.sub(r"(/[\w.@-]+){2,}", "/somewhere", value))[:200]
    return value


def _form(body: Any) -> Any:
    if isinstance(body, dict):
        return {k: _form(v) for k, v in sorted(body.items())}
    return [_form(body[0])] if isinstance(body, list) and body else ""


if __name__ == "__main__":
    main()
