"""Checks submitted configurations, in a process of its own for large ones. A module of its own: it imports little."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from determined.config import CheckResult, check
from determined.config.checking import located
from determined.config.findings import Finding
from determined.config.pool_layers import PoolLayers


@dataclass(frozen=True)
class CheckedConfig:
    """``checked`` has the diagnostics only; ``config`` is the effective configuration, None if there are errors."""

    checked: CheckResult
    config: dict[str, Any] | None


def check_config(
    text: str,
    name: str,
    defaults: Sequence[Mapping[str, Any]],
    has_containers: bool = False,
    pools: PoolLayers | None = None,
) -> CheckedConfig:
    """Checks a configuration and returns it as plain data, which is cheap to send between processes."""
    checked = check(text, name=name, defaults=defaults, has_containers=has_containers, pools=pools)
    config = checked.config.to_json() if checked.config is not None else None
    return CheckedConfig(replace(checked, config=None, submitted={}), config)


def with_findings(found: CheckedConfig, text: str, findings: Sequence[Finding]) -> CheckedConfig:
    """Adds problems that only the master can find, with their places in the text."""
    checked = replace(found.checked, diagnostics=located(text, found.checked.diagnostics, findings))
    is_wrong = any(each.severity == "error" for each in findings)
    return CheckedConfig(checked, None if is_wrong else found.config)
