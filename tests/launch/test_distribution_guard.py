"""The distribution guard: one folder that holds both determined and detent_cluster is refused."""

import pytest

from determined_launch import distribution_guard


def make(folder, *names):
    """Creates a folder with a package ``determined`` and these distributions. Returns its path."""
    (folder / "determined").mkdir(parents=True)
    for name in names:
        (folder / f"{name}.dist-info").mkdir()
    return str(folder)


def test_a_folder_with_both_distributions_is_found(tmp_path):
    folder = make(tmp_path / "a", "determined-0.38.1", "detent_cluster-0.2.0")
    assert distribution_guard.shared_folder(["/nowhere", folder]) == folder


def test_each_distribution_in_a_folder_of_its_own_is_accepted(tmp_path):
    first, second = make(tmp_path / "a", "determined-0.38.1"), make(tmp_path / "b", "detent_cluster-0.2.0")
    assert distribution_guard.shared_folder([first, second]) is None


def test_the_error_about_both_distributions_names_the_remedy(tmp_path, monkeypatch):
    folder = make(tmp_path / "a", "determined-0.38.1", "detent_cluster-0.2.0")
    monkeypatch.setattr("sys.path", [folder])
    with pytest.raises(distribution_guard.BothInstalled, match="Create a new environment"):
        distribution_guard.raise_if_both_installed()
