"""The wheel of the client: the modules of ``determined`` that it includes."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_THE_CLUSTER = {"config", "environments", "link", "local", "streams", "yaml_places.py"}
"""Parts of ``determined`` that only a machine with the whole product needs."""


def test_every_module_is_in_the_wheel_unless_only_a_cluster_needs_it():
    settings = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    in_wheel = {Path(path).name for path in included if path.startswith("../harness/determined/")}
    modules = {path.name for path in (ROOT / "harness" / "determined").iterdir()} - {"__pycache__"}
    assert in_wheel == modules - OF_THE_CLUSTER
