"""Links that leave a context: followed in one repository or on request, otherwise an error with the remedy."""

import os
from pathlib import Path

import pytest

from determined.context import pack, unpack
from determined.errors import ContextError


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Returns a git repository with a context in ``exp``, shared code beside it, and a secret outside of it."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text("token = x")
    (root / "exp").mkdir()
    (root / "exp" / "train.py").write_text("import shared")
    (root / "shared" / "deep").mkdir(parents=True)
    (root / "shared" / "a.py").write_text("a")
    (root / "shared" / "deep" / "b.py").write_text("b")
    (root / ".env").write_text("SECRET=1")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("private")
    return root


def unpacked(folder: Path, target: Path, *, follow_links: bool = False) -> list[str]:
    """Packs and unpacks a context. Returns the files that arrive, with links to files."""
    unpack(pack(folder, follow_links=follow_links).data, target)
    return sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())


def test_links_inside_one_repository_are_followed(repository: Path, tmp_path: Path) -> None:
    exp = repository / "exp"
    (exp / "shared").symlink_to("../shared")
    (exp / "one.py").symlink_to("../shared/a.py")
    packed = pack(exp)
    assert packed.followed == [f"one.py -> {repository}/shared/a.py", f"shared -> {repository}/shared"]
    assert packed.size == len("import shared") + 1 + 1 + 1
    assert unpacked(exp, tmp_path / "out") == ["one.py", "shared/a.py", "shared/deep/b.py", "train.py"]
    assert not (tmp_path / "out" / "shared").is_symlink()


def test_links_out_of_the_repository_are_an_error_with_the_remedy(repository: Path, tmp_path: Path) -> None:
    exp = repository / "exp"
    (exp / "data [1]").symlink_to("../../outside")
    (exp / "key").symlink_to(tmp_path / "outside" / "key")
    with pytest.raises(ContextError) as caught:
        pack(exp)
    lines = caught.value.message.splitlines()
    assert lines[0] == f"{exp} holds 2 links that point out of it, so the task would not find the target:"
    ignore = exp / ".detignore"
    assert lines[1] == f"  data [1] -> {tmp_path}/outside    exclude it with /data \\[1] in {ignore}"
    assert lines[2] == f"  key -> {tmp_path}/outside/key    exclude it with /key in {ignore}"
    assert "--follow-links" in lines[3]
    ignore.write_text("/data \\[1]\n/key\n")
    assert unpacked(exp, tmp_path / "left") == ["train.py"]
    ignore.unlink()
    assert unpacked(exp, tmp_path / "all", follow_links=True) == ["data [1]/key", "key", "train.py"]


def test_a_link_out_of_a_context_without_a_repository_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ctx").mkdir()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "ctx" / "out").symlink_to("../secret")
    with pytest.raises(ContextError, match="a link that points out of it"):
        pack(tmp_path / "ctx")


@pytest.mark.parametrize("target", ["../.env", "../.git/config", "../.git"])
def test_a_link_to_a_hidden_file_of_the_repository_is_an_error(repository: Path, target: str) -> None:
    (repository / "exp" / "link").symlink_to(target)
    with pytest.raises(ContextError, match="link -> "):
        pack(repository / "exp")


def test_hidden_files_behind_a_followed_link_are_named_and_left_out(repository: Path, tmp_path: Path) -> None:
    (repository / "shared" / ".env").write_text("SECRET=1")
    exp = repository / "exp"
    (exp / "shared").symlink_to("../shared")
    assert pack(exp).skipped == ["shared/.env: hidden, behind a link; --follow-links sends it"]
    assert "shared/.env" not in unpacked(exp, tmp_path / "out")
    assert "shared/.env" in unpacked(exp, tmp_path / "all", follow_links=True)


def test_a_link_in_a_followed_folder_to_a_secret_outside_is_an_error(repository: Path, tmp_path: Path) -> None:
    (repository / "shared" / "key").symlink_to(tmp_path / "outside" / "key")
    (repository / "exp" / "shared").symlink_to("../shared")
    with pytest.raises(ContextError, match="shared/key -> "):
        pack(repository / "exp")


def test_a_link_into_a_submodule_is_an_error(repository: Path) -> None:
    (repository / "module").mkdir()
    (repository / "module" / ".git").write_text("gitdir: ../.git/modules/module")
    (repository / "module" / "m.py").touch()
    (repository / "exp" / "module").symlink_to("../module")
    with pytest.raises(ContextError, match="module -> "):
        pack(repository / "exp")


def test_links_that_form_a_loop_are_skipped_and_named(repository: Path, tmp_path: Path) -> None:
    exp, shared = repository / "exp", repository / "shared"
    (exp / "shared").symlink_to("../shared")
    (exp / "top").symlink_to("..")  # holds the context itself
    (exp / "self").symlink_to("self")
    (shared / "again").symlink_to(".")
    (shared / "deep" / "up").symlink_to("..")
    packed = pack(exp)
    assert packed.skipped == [
        "self: a broken link",
        "top/.env: hidden, behind a link; --follow-links sends it",
        "top/exp/self: a broken link",
    ]
    unpack(packed.data, tmp_path / "out")
    assert os.readlink(tmp_path / "out" / "shared" / "again") == "."
    assert os.readlink(tmp_path / "out" / "shared" / "deep" / "up") == ".."
    assert (tmp_path / "out" / "top" / "exp" / "train.py").read_text() == "import shared"


def test_patterns_and_the_size_limit_apply_behind_followed_links(repository: Path, tmp_path: Path) -> None:
    exp = repository / "exp"
    (exp / "shared").symlink_to("../shared")
    (repository / "shared" / "big.bin").write_bytes(b"x" * 1000)
    with pytest.raises(ContextError, match=r"exclude it with /shared/big\.bin"):
        pack(exp, limit=500)
    (exp / ".detignore").write_text("/shared/big.bin\n")
    assert pack(exp, limit=500).size < 500
    (exp / ".detignore").write_text("shared/\n")
    assert unpacked(exp, tmp_path / "out") == ["train.py"]


def test_devices_and_pipes_behind_a_link_are_left_out(repository: Path) -> None:
    os.mkfifo(repository / "pipe")
    (repository / "exp" / "pipe").symlink_to("../pipe")
    packed = pack(repository / "exp")
    assert packed.skipped == ["pipe: neither a file nor a folder (pipe)"]
    assert packed.followed == []


def test_links_of_included_folders_are_followed_too(repository: Path) -> None:
    (repository / "shared" / "exp").symlink_to("../exp")
    packed = pack(repository / "exp", [repository / "shared"])
    assert packed.followed == [f"shared/exp -> {repository}/exp"]
