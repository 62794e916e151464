"""Settings files of master and agent: each invalid setting is named with its line."""

from pathlib import Path

import pytest

from determined.config import settings_file
from determined.errors import ConfigError
from determined_agent.settings import read_settings as read_agent
from determined_master.settings.read_settings import SettingsError
from determined_master.settings.read_settings import read_settings as read_master

KNOWN = {"port", "log_level"}


def write_settings(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text)
    return path


def test_read_returns_values_and_their_positions(tmp_path: Path) -> None:
    path = write_settings(tmp_path, "# a comment\nport: 80\nlog-level: debug\n")
    settings = settings_file.read(path, KNOWN)
    assert settings.values == {"port": 80, "log_level": "debug"}
    assert settings.where("log_level") == f"{path}:3:12"


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n"])
def test_an_empty_file_has_no_settings(tmp_path: Path, text: str) -> None:
    assert settings_file.read(write_settings(tmp_path, text), KNOWN).values == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port: 80\nprot: 81\n", ':2:1: unknown setting "prot"; did you mean "port"?'),
        ("zzz: 1\n", ':1:1: unknown setting "zzz"'),
        ("port: 1\nport: 2\n", ":2:1: "),
    ],
)
def test_an_invalid_setting_is_named_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    path = write_settings(tmp_path, text)
    (problem,) = settings_file.read(path, KNOWN).problems
    assert problem.startswith(f"{path}{expected}")


@pytest.mark.parametrize(("text", "expected"), [("port: [\n", "this is not YAML"), ("- port\n", ":1:1: ")])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = write_settings(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        settings_file.read(path, KNOWN)
    assert expected in raised.value.message
    assert str(path) in raised.value.message


def test_all_invalid_settings_are_named_in_one_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        read_master(["--config", str(write_settings(tmp_path, "a1: 1\nport: many\nb2: 2\n"))], {})
    for expected in (':1:1: unknown setting "a1"', ":2:7: port: ", ':3:1: unknown setting "b2"'):
        assert expected in str(raised.value)


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: No such file"):
        settings_file.read(tmp_path / "none.yaml", KNOWN)


def test_the_master_names_the_line_of_an_invalid_value_unless_a_flag_replaces_it(tmp_path: Path) -> None:
    path = write_settings(tmp_path, "cluster_name: lab\nport: many\n")
    with pytest.raises(SettingsError, match=r"settings\.yaml:2:7: port: "):
        read_master(["--config", str(path)], {})
    settings = read_master(["--config", str(path), "--port", "81"], {})
    assert (settings.port, settings.cluster_name) == (81, "lab")


def test_the_master_reads_the_initial_password_from_the_key_of_determined(tmp_path: Path) -> None:
    path = write_settings(tmp_path, "security:\n  initial_user_password: Secret123\n")
    assert read_master(["--config", str(path)], {}).initial_user_password == "Secret123"


def test_the_agent_names_the_line_of_an_invalid_value(tmp_path: Path) -> None:
    path = write_settings(tmp_path, "pool: a\nslots: -1\n")
    with pytest.raises(ConfigError, match=r"settings\.yaml:2:8: slots: "):
        read_agent(["--config", str(path)], {})
    with pytest.raises(ConfigError, match='unknown setting "base_environment"'):
        read_agent(["--config", str(write_settings(tmp_path, "base_environment: {}\n"))], {})
