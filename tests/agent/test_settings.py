"""The agent's settings from flags, environment and file, and the errors of invalid ones."""

from pathlib import Path

import pytest

from determined.errors import ConfigError
from determined_agent.settings import base_environment, read_settings


def test_flags_override_the_environment_and_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("pool: from-file\nslots: 1\nid: from-file\ntasks-as-me: true\n")
    environ = {"DET_AGENT_SLOTS": "2", "DET_AGENT_ID": "from-environment", "DET_MASTER": "http://m:1", "HOME": "/h"}
    settings = read_settings(["--config", str(file), "--slots", "3"], environ)
    assert (settings.slots, settings.id, settings.pool) == (3, "from-environment", "from-file")
    assert (settings.master, settings.tasks_as_me) == ("http://m:1", True)
    assert settings.data == Path("/h/.local/share/detent/agent")


def test_every_invalid_setting_is_named_in_one_error(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("slots: many\ncolour: red\n")
    with pytest.raises(ConfigError, match=r":2:1: unknown setting \"colour\".*:1:8: slots"):
        read_settings(["--config", str(file)], {"HOME": "/h"})
    with pytest.raises(ConfigError, match="nowhere"):
        read_settings(["--config", str(tmp_path / "nowhere")], {"HOME": "/h"})


def test_relative_paths_become_absolute_and_invalid_paths_and_urls_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_settings(["--data", "here"], {}).data == tmp_path / "here"
    with pytest.raises(ConfigError, match="no Python at /no/python"):
        read_settings(["--task-python", "/no/python"], {"HOME": "/h"})
    with pytest.raises(ConfigError, match="http://host:port"):
        read_settings(["--master", "localhost:8080"], {"HOME": "/h"})


def test_tasks_inherit_only_path_locale_and_proxy_variables() -> None:
    environ = {"PATH": "/bin", "LC_ALL": "C", "https_proxy": "p", "PYTHONPATH": "/x", "TOKEN": "s", "DET_MASTER": "m"}
    assert base_environment(environ) == {"PATH": "/bin", "LC_ALL": "C", "https_proxy": "p"}


@pytest.mark.parametrize(
    "flags", [["--log-level", "foo"], ["--master", "http://h:abc"], ["--master", "http://h:99999"]]
)
def test_an_unknown_log_level_and_an_address_without_a_valid_port_are_refused(flags: list[str]) -> None:
    with pytest.raises(ConfigError, match=flags[1]):
        read_settings(flags, {"HOME": "/h"})


@pytest.mark.parametrize("segment", ["", "output_segment_bytes: 1048576\n"])
def test_output_that_would_need_too_many_files_is_refused(tmp_path: Path, segment: str) -> None:
    (tmp_path / "agent.yaml").write_text(f"master: http://localhost:8080\nunsent_output_bytes: {1 << 40}\n{segment}")
    with pytest.raises(ConfigError, match=f"at least {1 << 27} for unsent_output_bytes of {1 << 40}"):
        read_settings(["--config", str(tmp_path / "agent.yaml")], {})


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_time_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="slot_check_seconds"):
        read_settings([], {"HOME": "/h", "DET_AGENT_SLOT_CHECK_SECONDS": value})
