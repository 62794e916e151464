"""Files of ``det ssh-config``: what the user wrote stays as it is, modes are private, and keys of hosts are replaced."""

import stat
from pathlib import Path

import pytest

from determined.errors import BadRequest
from determined_cli.ssh import files as module
from determined_cli.ssh.files import SshFiles
from determined_cli.ssh.proxy import Destination, destination


@pytest.fixture
def files(tmp_path: Path) -> SshFiles:
    return SshFiles(tmp_path / ".ssh")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folder_key_and_configuration_are_made_private(files: SshFiles):
    files.make_key()
    files.write("Host x\n")
    files.learn("det-trial-1", "ssh-ed25519 AAAA")
    assert [mode(path) for path in (files.home, files.config.parent)] == [0o700, 0o700]
    made = [*files.config.parent.iterdir(), files.home / "config"]
    assert {path.name: mode(path) for path in made} == dict.fromkeys((path.name for path in made), 0o600)
    assert files.public_key.startswith("ssh-ed25519 AAAA")


def test_a_key_is_made_once(files: SshFiles):
    files.make_key()
    before = files.key.read_text()
    files.make_key()
    assert files.key.read_text() == before


def test_no_key_says_which_command_makes_one(files: SshFiles):
    with pytest.raises(BadRequest, match="run `det ssh-config`"):
        _ = files.public_key


@pytest.mark.parametrize("text", ["", "Host a\n    User b", "# über\r\nHost *\r\n  Port 22\r\n", "\n\nHost a\n"])
def test_the_users_configuration_is_included_into_at_its_top_once_and_restored_byte_by_byte(files: SshFiles, text: str):
    config = files.home / "config"
    files.home.mkdir(mode=0o700)
    config.write_bytes(text.encode())
    config.chmod(0o644)
    for _ in range(2):
        files.make_key()
        files.write("Host x\n")
        lines = config.read_bytes().decode().splitlines()
        assert lines[1] == f'Include "{files.config}"'
        assert config.read_bytes().endswith(text.encode())
        assert sum("Include" in line for line in lines) == 1
    assert mode(config) == 0o644
    for _ in range(2):
        files.remove()
        assert config.read_bytes() == text.encode()
    assert not files.config.parent.exists()


def test_a_configuration_that_is_a_link_stays_one(files: SshFiles, tmp_path: Path):
    files.home.mkdir()
    target = tmp_path / "dotfiles"
    target.write_text("Host a\n")
    (files.home / "config").symlink_to(target)
    files.make_key()
    files.write("Host x\n")
    assert (files.home / "config").is_symlink()
    assert "Include" in target.read_text()


def test_a_configuration_in_another_encoding_is_left_alone(files: SshFiles):
    files.make_key()
    (files.home / "config").write_bytes(b"# \xff\n")
    with pytest.raises(BadRequest, match="is not in UTF-8"):
        files.write("Host x\n")
    assert (files.home / "config").read_bytes() == b"# \xff\n"


def test_what_others_put_into_the_folder_stays(files: SshFiles):
    files.make_key()
    (files.config.parent / "mine").write_text("x")
    files.remove()
    assert [path.name for path in files.config.parent.iterdir()] == ["mine"]


def test_the_key_of_a_host_replaces_its_earlier_one_and_old_hosts_are_dropped(
    files: SshFiles, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "MAX_KNOWN_HOSTS", 2)
    files.make_key()
    for host, key in (
        ("det-trial-1", "ssh-ed25519 A"),
        ("det-task-3F", "ssh-ed25519 B"),
        ("det-trial-1", "ssh-ed25519 C"),
    ):
        files.learn(host, key)
    assert files.known_hosts.read_text().splitlines() == [
        "det-task-3f,[det-task-3f]:* ssh-ed25519 B",
        "det-trial-1,[det-trial-1]:* ssh-ed25519 C",
    ]
    files.learn("det-trial-2", "ssh-ed25519 D")
    assert [line.split(",")[0] for line in files.known_hosts.read_text().splitlines()] == ["det-trial-1", "det-trial-2"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("det-trial-7", Destination("trial", "7", 0)),
        ("det-trial-7-rank-12", Destination("trial", "7", 12)),
        ("det-task-1.3f2b-11ee", Destination("task", "1.3f2b-11ee", 0)),
        ("det-task-3f2b-rank-1", Destination("task", "3f2b", 1)),
        ("det-shell-9DAA", Destination("shell", "9DAA", 0)),
    ],
)
def test_a_host_name_names_a_task_and_a_rank(host: str, expected: Destination):
    assert destination(host) == expected


@pytest.mark.parametrize(
    "host", ["", "trial-7", "det-trial-", "det-trial-x", "det-task-a/b", "det-task-$(x)", "det-task-a\n"]
)
def test_any_other_host_name_is_refused_with_those_that_exist(host: str):
    with pytest.raises(BadRequest, match="det-trial-ID, det-task-ID or det-task-ID-rank-N is one"):
        destination(host)
