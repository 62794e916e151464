"""Settings of the master from variables, and numbers out of range."""

import pytest

from determined_master.settings.read_settings import SettingsError, read_settings


def test_lists_and_sections_are_read_from_variables():
    environ = {
        "HOME": "/nowhere",
        "DET_MASTER_TRUSTED_PROXIES": "10.0.0.5,10.1.0.0/16",
        "DET_MASTER_LAUNCH": '{"hang_timeout": 60}',
    }
    settings = read_settings([], environ)
    assert settings.trusted_proxies == ("10.0.0.5", "10.1.0.0/16")
    assert settings.launch == {"hang_timeout": 60}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("HEARTBEAT_SECONDS", value) for value in ("nan", "0", "-1", "inf")],
        *[("AGENT_RECONNECT_WAIT", value) for value in ("nan", "-5", "inf")],
        ("CONTEXT_LIMIT", "-1"),
    ],
)
def test_numbers_out_of_range_are_refused(name: str, value: str):
    with pytest.raises(SettingsError, match=name.lower()):
        read_settings([], {"HOME": "/nowhere", f"DET_MASTER_{name}": value})
