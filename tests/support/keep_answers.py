"""Makes ``tests/contract/recorded_answers.json`` from a recording: ``python -m tests.support.keep_answers FOLDER
FILE``.

The folder holds the answers of a real Determined 0.38.1 to one session of calls, one file for each noun. The result
contains facts only: the calls, their status, and the shapes of the answers. Ids become names, since a test's master has
its own ids.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.answer_shape import shape_of

NAMES = {
    "e811e085-8e5e-40f7-9437-ca2e10c50ad0": "{command}",
    "1.a7c28f83-2b18-40cc-ad5b-810dfbced046": "{task}",
    "2.202c1945-1e03-429e-8a7d-c92b9d5f085b.1": "{allocation}",
    "5813d2b8-364d-49b0-ad7a-c4b56cb0c3a5": "{job}",
    "19daa67e-4263-4d3f-8be5-d021ab5a7020": "{last_checkpoint}",
    "dd5c5fec-49cb-4046-ad0f-f625caf42595": "{first_checkpoint}",
    "/projects/2": "/projects/{project}",
    "/workspaces/2": "/workspaces/{workspace}",
    "Passw0rd!": "{password}",
    "2026-11-26": "{today}",
    "2026-11-25": "{yesterday}",
    "2026-11-27": "{tomorrow}",
}
COMMON = {"description": "d", "labels": ["a", "b"], "entrypoint": "python3 train.py", "max_restarts": 0}
COMMON |= {"searcher": {"name": "single", "metric": "validation_loss"}}
HYPERPARAMETERS = {"steps": 10, "wait": 0.05, "lr": 0.5}
NOTE = {
    "path": "sub/note.txt",
    "type": 48,
    "content": "bm90ZQo=",
    "mode": 420,
    "uid": 0,
    "gid": 0,
    "mtime": "1700000000",
}
CUT = {  # configurations that are truncated in the recording
    "big": COMMON | {"hyperparameters": HYPERPARAMETERS, "resources": {"slots_per_trial": 64}},
    "search": COMMON
    | {
        "hyperparameters": HYPERPARAMETERS | {"lr": {"type": "double", "minval": 0.1, "maxval": 1}},
        "searcher": {"name": "random", "metric": "validation_loss", "max_trials": 3},
    },
}


def main() -> None:
    folder, target = map(Path, sys.argv[1:])
    nouns = {
        path.stem: [_recorded_call(call) for call in json.loads(path.read_text())]
        for path in sorted(folder.glob("*.json"))
    }
    lines = []
    for noun, calls in nouns.items():
        rows = ",\n  ".join(json.dumps(call, ensure_ascii=False) for call in calls)
        lines.append(f'"{noun}": [\n  {rows}\n]')
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(sum(map(len, nouns.values())), "calls")


def _recorded_call(exchange: dict[str, Any]) -> dict[str, Any]:
    call = {key: _renamed(exchange[key]) for key in ("call", "query", "request") if exchange.get(key) is not None}
    answer = {key: shape_of(exchange[key]) for key in ("answer", "answer_lines") if exchange.get(key) is not None}
    return call | {"status": exchange["status"]} | answer


def _renamed(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _renamed(item, name) for name, item in value.items()}
    if key == "modelDefinition" and value:
        return [*(_renamed(item) for item in value[:2]), NOTE]
    if isinstance(value, list):
        return [_renamed(item) for item in value if not (isinstance(item, str) and item.startswith("... "))]
    if key in ("projectId", "destinationProjectId", "sourceProjectId") and value == 2:
        return 1
    if key in ("workspaceId", "destinationWorkspaceId") and value == 2:
        return 1
    if isinstance(value, str):
        if key == "config" and value.startswith("{"):
            return _config(value)
        if key == "content" and value:
            return "cGFzcwo="
        for value_in_recording, name in NAMES.items():
            value = value.replace(value_in_recording, name)
    return value


def _config(text: str) -> str:
    for name, config in CUT.items():
        if text.startswith(f'{{"name": "{name}"'):
            return json.dumps({"name": name, **config})
    config = {key: value for key, value in json.loads(text).items() if key not in ("project", "workspace")}
    return json.dumps(config)


if __name__ == "__main__":
    main()
