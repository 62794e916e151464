"""Actions on experiments: the commands accept, ignore and refuse exactly as the page offers them."""

import pytest
from sqlalchemy import update
from tests.support.cluster import CONFIG, Cluster

from determined.errors import PreconditionFailed
from determined.states import ExperimentState
from determined_master.api.queries.experiment_status import verbs_of
from determined_master.auth.principal import Principal
from determined_master.db.models import ExperimentRow
from determined_master.experiments import repository
from determined_master.experiments.actions import Action, refusal

ADMIN = Principal(1, "admin", admin=True)
COMMANDS: tuple[Action, ...] = ("pause", "activate", "cancel", "kill", "archive", "unarchive", "delete")


class Undone(Exception):
    """Rolls a transaction back, so that the loops of the master do not see it."""


async def outcome(cluster: Cluster, action: Action, state: ExperimentState, *, archived: bool) -> str:
    """Returns what a command did to an experiment in this state: "changed", "nothing" or its refusal."""
    lifecycle = cluster.master.lifecycle
    result = ""
    try:
        async with cluster.master.database.write() as session:
            await session.execute(update(ExperimentRow).values(state=state, archived=archived))
            session.expire_all()
            try:
                if action in ("archive", "unarchive"):
                    await lifecycle.archive(1, ADMIN, session, archived=action == "archive")
                else:
                    await getattr(lifecycle, action)(1, ADMIN, session)
                row = await repository.get(session, 1)
                result = "nothing" if (row.state, row.archived) == (state, archived) else "changed"
            except PreconditionFailed as error:
                result = error.message
            raise Undone
    except Undone:
        return result


@pytest.mark.sqlite
@pytest.mark.parametrize("state", [each for each in ExperimentState if each is not ExperimentState.DELETED])
async def test_a_command_does_what_the_page_offers(cluster: Cluster, state: ExperimentState) -> None:
    await cluster.create(CONFIG, activate=False)
    for archived in (False, True) if state.is_terminal else (False,):
        can, why = verbs_of(ExperimentRow(id=1, state=state, archived=archived, end_time=None))
        for action in COMMANDS:
            refused = refusal(action, state, archived=archived)
            assert getattr(can, action) == (refused is None)
            assert getattr(why, action) == (None if refused is None else f"it {refused.text}")
            expected = "changed" if refused is None else "nothing"
            if refused is not None and not refused.is_noop:
                expected = f"experiment 1 {refused.text}"
            assert await outcome(cluster, action, state, archived=archived) == expected, (action, archived)
