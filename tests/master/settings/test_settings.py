"""The settings of the master: variables for all of them, and bounds of numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from determined_master.settings.read_settings import SettingsError, read_settings
from determined_master.settings.settings import Settings


def from_environment(**variables: str) -> Settings:
    names = {f"DET_MASTER_{name.upper()}": value for name, value in variables.items()}
    return read_settings([], {"HOME": "/nowhere", **names})


def test_lists_and_mappings_can_be_set_by_variables():
    settings = from_environment(trusted_proxies="10.0.0.5, 10.1.0.0/16", launch='{"process_port_offset": 0}')
    assert settings.trusted_proxies == ("10.0.0.5", "10.1.0.0/16")
    assert settings.launch == {"process_port_offset": 0}


def test_every_setting_can_be_set_by_a_variable():
    as_text: dict[str, Any] = {
        "resource_pools": json.dumps([{"pool_name": "default"}]),
        "checkpoint_roots": "/mnt/a:/mnt/b",
        "checkpoint_buckets": "s3://a/b,s3://c",
        "trusted_proxies": "10.0.0.5",
        **dict.fromkeys(("scheduler", "task_container_defaults", "checkpoint_storage", "launch"), "{}"),
    }
    of_several_parts = {
        name
        for name, field in Settings.model_fields.items()
        if isinstance(field.get_default(call_default_factory=True), tuple | dict)
    }
    assert of_several_parts <= as_text.keys()
    from_environment(**as_text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("heartbeat_seconds", "nan"),
        ("heartbeat_seconds", "0"),
        ("heartbeat_seconds", "inf"),
        ("agent_reconnect_wait", "-5"),
        ("agent_reconnect_wait", "nan"),
        ("agent_reconnect_wait", "1e300"),
        ("context_limit", "-1"),
        ("database_wait_seconds", "nan"),
        ("stale_file_seconds", "inf"),
    ],
)
def test_a_number_out_of_its_bounds_is_refused(name: str, value: str):
    with pytest.raises(SettingsError, match=name):
        from_environment(**{name: value})
    assert from_environment().data == Path("/nowhere/.local/share/detent")
