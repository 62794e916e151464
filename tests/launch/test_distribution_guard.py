"""The look for the older distribution: one folder with both, and nothing else, is refused."""

import pytest

from determined_launch import distribution_guard


def make(folder, *names):
    (folder / "determined").mkdir(parents=True)
    for name in names:
        (folder / f"{name}.dist-info").mkdir()
    return str(folder)


def test_both_in_one_folder_are_found(tmp_path):
    both = make(tmp_path / "a", "determined-0.38.1", "detent_cluster-0.1.0")
    assert distribution_guard.shared_folder(["/nowhere", both]) == both


def test_each_distribution_in_a_folder_of_its_own_is_accepted(tmp_path):
    first, second = make(tmp_path / "a", "determined-0.38.1"), make(tmp_path / "b", "detent_cluster-0.1.0")
    assert distribution_guard.shared_folder([first, second]) is None


def test_the_text_says_what_to_do(tmp_path, monkeypatch):
    both = make(tmp_path / "a", "determined-0.38.1", "detent_cluster-0.1.0")
    monkeypatch.setattr("sys.path", [both])
    with pytest.raises(distribution_guard.BothInstalled, match="Create a new environment"):
        distribution_guard.refuse()
