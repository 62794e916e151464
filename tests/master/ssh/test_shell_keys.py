"""Keys of tasks: derived, different for each task and purpose, readable by OpenSSH, and never shown."""

import subprocess
from pathlib import Path

import pytest

from determined.errors import BadRequest
from determined_master.auth.secrets import Secrets
from determined_master.ssh.shell_keys import checked_public_key, host_key, user_key


def test_keys_are_the_same_after_a_restart_and_different_for_each_task_purpose_and_cluster(tmp_path: Path):
    secrets = [Secrets.load(tmp_path).ssh_secret, Secrets.load(tmp_path).ssh_secret]
    (tmp_path / "other").mkdir()
    secrets.append(Secrets.load(tmp_path / "other").ssh_secret)
    public = [make(secret, task).public_openssh for secret in secrets for make in (host_key, user_key) for task in "ab"]
    assert public[:4] == public[4:8]
    assert len(set(public)) == 8


def test_openssh_reads_the_private_key_and_finds_the_public_one(tmp_path: Path):
    pair = user_key(b"secret", "1.a")
    path = tmp_path / "key"
    path.write_text(pair.private_openssh)
    path.chmod(0o600)
    done = subprocess.run(["ssh-keygen", "-y", "-f", str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == pair.public_openssh.split()


def test_a_pair_does_not_show_its_private_key():
    pair = host_key(b"secret", "1.a")
    assert "PRIVATE" not in f"{pair} {pair!r}"


def test_a_public_key_is_taken_without_its_comment():
    public = user_key(b"secret", "1.a").public_openssh
    assert checked_public_key(f"{public} ada@laptop\nssh-ed25519 AAAA") == public


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "ssh-ed25519 é",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7",
        'command="x" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ',
    ],
)
def test_any_other_text_is_refused_with_what_is_needed(text: str):
    with pytest.raises(BadRequest, match="ssh-keygen -t ed25519"):
        checked_public_key(text)
