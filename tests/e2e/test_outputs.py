"""Outputs of scripts on a live cluster: over a failure, a pause and a kill, downloaded, and never more than the newest."""

from pathlib import Path

import pytest
from tests.support import plain_scripts
from tests.support.live_cluster import LiveCluster
from tests.support.plain_scripts import PlainScript
from tests.support.waiting import wait_until

from determined.client import outputs

pytestmark = pytest.mark.e2e

FAILS_ONCE = """
mkdir -p runs
echo "attempt $DET_TRIAL_RUN_ID" >> runs/a.txt
ln -sf a.txt runs/latest
ln -sf /etc/hostname runs/elsewhere
[ "$DET_TRIAL_RUN_ID" = 2 ] || exit 3
"""
LOOP = f"""
mkdir -p runs
step=$(cat runs/state 2>/dev/null || echo 0)
trap 'echo $step > runs/state; exit 7' USR1
while [ "$step" -lt {plain_scripts.STEPS} ]; do
    step=$((step + 1))
    echo $step >> runs/steps
    echo $step >> "$SAVES/steps"
    sleep 0.1
done
"""


def kept(script: PlainScript) -> list[dict[str, object]]:
    return list(outputs.of_experiment(script.cluster.session, script.id))


def downloaded(script: PlainScript, folder: Path) -> Path:
    [found] = kept(script)
    outputs.download(script.cluster.session, str(found["uuid"]), folder)
    return folder / "runs"


def stored(cluster: LiveCluster) -> set[str]:
    return {path.name for path in (cluster.data / "checkpoints").glob("*")}


def test_a_file_that_two_attempts_write_has_the_lines_of_both(cluster: LiveCluster, tmp_path: Path) -> None:
    before = stored(cluster)
    script = plain_scripts.create(
        cluster, tmp_path, {"run.sh": FAILS_ONCE}, "bash run.sh", pause=None, max_restarts=1, outputs=["runs/"]
    )
    script.ended()
    runs = downloaded(script, tmp_path / "got")
    assert (runs / "latest").read_text() == "attempt 1\nattempt 2\n"
    assert not (runs / "elsewhere").exists()
    assert any("not kept: runs/elsewhere is a link to /etc/hostname" in line for line in script.log)
    assert not any("runs/a.txt" in line for line in script.log if line.startswith("removed with the working"))
    assert cluster.session.get(f"/api/v1/experiments/{script.id}/checkpoints")["checkpoints"] == []
    assert script.trials[0]["checkpointCount"] == 0
    uuid = kept(script)[0]["uuid"]
    wait_until(lambda: stored(cluster) - before == {uuid}, what="older outputs are removed")


def test_a_paused_script_goes_on_from_its_outputs(cluster: LiveCluster, tmp_path: Path) -> None:
    script = plain_scripts.create(cluster, tmp_path, {"loop.sh": LOOP}, "bash loop.sh", outputs=["runs"])
    script.has_lines("steps", 3)
    script.pause()
    assert len(kept(script)) == 1
    script.do("activate")
    script.ended()
    steps = (downloaded(script, tmp_path / "got") / "steps").read_text().split()
    assert steps == [str(step) for step in range(1, plain_scripts.STEPS + 1)]


def test_a_killed_script_has_kept_its_outputs(cluster: LiveCluster, tmp_path: Path) -> None:
    text = "mkdir -p runs; echo all > runs/a; echo 1 >> $SAVES/steps; trap '' TERM INT; while :; do sleep 0.1; done"
    script = plain_scripts.create(cluster, tmp_path, {"run.sh": text}, "bash run.sh", pause=None, outputs=["runs"])
    script.has_lines("steps", 1)
    script.do("kill")
    script.ended("CANCELED")
    assert (downloaded(script, tmp_path / "got") / "a").read_text() == "all\n"
    script.nothing_left()
