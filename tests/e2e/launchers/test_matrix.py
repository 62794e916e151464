"""Every layer, on every shape of a gang, for a trial class and a script, gives the numbers of the bare launcher."""

import itertools
import math
import os

import pytest
from tests.support.live_launchers import KINDS, LAYERS, example_under, outcome_of, seed_of
from tests.support.live_machines import REMOTE_SHELLS
from tests.support.live_processes import environ_of
from tests.support.live_trials import create

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.budget(90, "trains under a launcher and its bare form")]


SHAPES = ("1x2", "2x1", "2x2")


# test_pause.py compares horovod with its bare launcher, test_ranks.py trains engines of deepspeed on several ranks, and
# tests/e2e/containers runs torch_distributed over two agents.
@pytest.mark.long
@pytest.mark.parametrize(("layer", "kind", "shape"), list(itertools.product(LAYERS, KINDS, SHAPES)))
def test_each_layer_gives_the_same_numbers_as_its_bare_launcher(gang, reference, tmp_path, layer, kind, shape):
    slots = gang.shape(shape)
    experiment = create(gang, example_under(layer, kind, slots=slots), tmp_path)
    experiment.running()
    assert not set(REMOTE_SHELLS) & {name for pid in experiment.processes for name in on_path(pid)}
    assert gang.network.remote_shells() == []
    experiment.ended(within=180)
    actual = outcome_of(experiment)
    expected = reference(layer, kind, slots, seed_of(gang, experiment))
    assert len(actual.validation) == len(expected.validation) >= 4
    pairs = list(zip(actual.validation.values(), expected.validation.values(), strict=True))
    if slots == 2:
        assert pairs == [(loss, loss) for loss in expected.validation.values()]
        assert actual.finals == expected.finals
        assert len(actual.finals) == 2
    else:
        assert all(math.isclose(ours, theirs, rel_tol=1e-6) for ours, theirs in pairs), pairs
    experiment.nothing_left()


def on_path(pid: int) -> set[str]:
    """Returns the remote shells on the PATH of a process, without ours, which is in its run folder."""
    environ = environ_of(pid)
    folders = [f for f in environ.get("PATH", "").split(":") if not f.startswith(environ.get("DET_RUN_DIR") or "\0")]
    return {name for name in REMOTE_SHELLS for folder in folders if os.access(os.path.join(folder, name), os.X_OK)}
