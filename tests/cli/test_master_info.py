"""`det master info` on a master whose disk is full."""

from tests.cli.conftest import Det, FakeMaster

FULL = {"status": "down", "storage": [{"name": "data", "status": "full"}, {"name": "checkpoints-1", "status": "up"}]}


def test_master_info_warns_about_a_full_disk_on_standard_error(det: Det, fake: FakeMaster):
    fake.answers["GET /api/v1/master"] = {"clusterName": "one"}
    fake.answers["GET /health"] = (503, FULL)
    done = det("-m", fake.url, "master", "info")
    assert done.code == 0
    assert "cluster_name: one" in done.out
    assert done.err == "the master's disk is full or cannot be written (data); trials wait until it can be written\n"


def test_master_info_gives_no_warning_with_free_space_or_an_older_master(det: Det, fake: FakeMaster):
    fake.answers["GET /api/v1/master"] = {"clusterName": "one"}
    for health in ({"status": "up", "storage": [{"name": "data", "status": "low"}]}, {"status": "up"}, (404, {})):
        fake.answers["GET /health"] = health
        done = det("-m", fake.url, "master", "info")
        assert (done.code, done.err) == (0, "")
