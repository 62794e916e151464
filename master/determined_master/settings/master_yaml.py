"""Reads master.yaml: our own settings, and those of a Determined cluster under their names there."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from determined.config import settings_file
from determined.config.settings_file import SettingsFile
from determined_master.settings.task_container_defaults import WITHOUT_EFFECT

_OF_RESOURCE_MANAGER = {
    "scheduler": "scheduler",
    "default_compute_resource_pool": "default_pool",
    "default_aux_resource_pool": "default_aux_pool",
    "max_aux_containers_per_agent": "max_zero_slot_containers",
}
_OF_SECURITY = {
    "initial_user_password": "initial_user_password",
    "tls.cert": "tls_cert",
    "tls.key": "tls_key",
}
_SECTIONS = ("security", "resource_manager", "observability")
_ELSEWHERE = {
    "db": "set database_url, or copy the data with det-master copy-database",
    "root": "the page is a part of this master",
    "log": "set log_level",
    "telemetry": "this master sends none",
    "cache": "see data",
}
"""Sections of Determined without a setting here, and what to use instead."""
_WITHOUT_EFFECT = frozenset(
    {
        *("__internal", "additional_resource_managers", "bind_mounts", "config_file", "det_cloud", "enable_cors"),
        *("feature_switches", "hpimportance", "integrations", "logging", "notebook_timeout", "oidc", "provisioner"),
        *("reserved_ports", "retention_policy", "saml", "scim", "tensorboard_timeout", "ui_customization", "webhooks"),
        *("resource_manager.client_ca", "resource_manager.metadata", "resource_manager.name"),
        *("resource_manager.no_default_resource_pools", "resource_manager.require_authentication"),
        *("security.authz", "security.default_task", "security.ssh", "security.token"),
    }
)
_OF_POOLS = frozenset({"agent_reattach_enabled", "agent_reconnect_wait", "kubernetes_namespace", "metadata"})
_OF_SCHEDULERS = frozenset({"allow_heterogeneous_fits", "fair_share", "priority", "round_robin"})
_PROVIDERS = ("aws", "gcp", "hpc")


def read(path: Path, known: Collection[str]) -> tuple[SettingsFile, list[str]]:
    """Returns the settings of a file, and a sentence for each of Determined's that has no effect on this master.

    Raises ConfigError if the file cannot be read.
    """
    file = settings_file.read(path, {*known, *_SECTIONS, *_ELSEWHERE, *_WITHOUT_EFFECT})
    warnings = []
    file.values.pop("observability", None)  # the figures of Prometheus are always offered
    for name in [name for name in file.values if name in _ELSEWHERE or name in _WITHOUT_EFFECT]:
        del file.values[name]
        hint = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        warnings.append(f"{file.where(name)}: {name} has no effect on this master{hint}")
    warnings += [f"{file.where(name)}: {text} has no effect on this master" for name, text in _without_effect(file)]
    manager = file.values.get("resource_manager")
    if isinstance(manager, dict) and manager.get("type", "agent") == "agent":
        manager.pop("type", None)
    tls = file.values["security"].pop("tls", None) if isinstance(file.values.get("security"), dict) else None
    if isinstance(tls, dict):
        file.values["security"] |= {f"tls.{name}": value for name, value in tls.items()}
    for section, names in (("security", _OF_SECURITY), ("resource_manager", _OF_RESOURCE_MANAGER)):
        warnings += _take_section(file, section, names)
    return file, warnings


def _without_effect(file: SettingsFile) -> Iterator[tuple[str, str]]:
    """Removes fields of Determined inside of our settings. Yields the setting and the field."""
    for setting, values, where in _mappings(file.values):
        gone = {
            "pool": _OF_POOLS,
            "scheduler": _OF_SCHEDULERS,
            "task_container_defaults": WITHOUT_EFFECT,
        }[where.rpartition(".")[2] if "." in where else where]
        for name in [name for name in values if name in gone]:
            del values[name]
            yield setting, f"{where}.{name}"
        provider = values.get("provider")
        if isinstance(provider, dict) and provider.get("type") in _PROVIDERS:
            del values["provider"]
            yield setting, f"a provider of type {provider['type']}"


def _mappings(values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yields the mappings that hold fields of Determined: setting, mapping, and how it is named."""
    pools = values.get("resource_pools")
    manager = values.get("resource_manager")
    of_manager = manager.get("scheduler") if isinstance(manager, dict) else None
    sections = [
        ("task_container_defaults", values.get("task_container_defaults"), "task_container_defaults"),
        ("scheduler", values.get("scheduler"), "scheduler"),
        ("resource_manager", of_manager, "resource_manager.scheduler"),
    ]
    for pool in pools if isinstance(pools, list) else []:
        if isinstance(pool, dict):
            sections += [
                ("resource_pools", pool, "pool"),
                ("resource_pools", pool.get("scheduler"), "pool.scheduler"),
                ("resource_pools", pool.get("task_container_defaults"), "pool.task_container_defaults"),
            ]
    return ((setting, each, where) for setting, each, where in sections if isinstance(each, dict))


def _take_section(file: SettingsFile, section: str, names: Mapping[str, str]) -> Iterator[str]:
    """Stores the values of a section under the names of settings. Yields a sentence for one of Determined without a
    setting here; any other is a problem."""
    given = file.values.pop(section, None) or {}
    if not isinstance(given, dict):
        file.problems.append(f"{file.where(section)}: {section} is not a mapping")
        return
    for name, value in given.items():
        if name not in names:
            text = f"{file.where(section)}: {section}.{name} has no effect on this master"
            if f"{section}.{name}" in _WITHOUT_EFFECT:
                yield text
            else:
                file.problems.append(f"{text}; remove it")
            continue
        file.values[names[name]] = value
        file.places[names[name]] = file.places[section]
