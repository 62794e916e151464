"""``det batch`` on a cluster: the experiment of a submission is created, shown, followed, cancelled and continued."""

import sys
from argparse import Namespace
from dataclasses import dataclass

from determined.client import experiments, lifecycle, submissions
from determined.client.session import Session
from determined.errors import ConfigError, Conflict, DeterminedError, MasterUnreachable
from determined_cli import connection, logs
from determined_cli.output.states import display_state, without_prefix
from determined_cli.terminal.messages import say
from determined_workflows.batch import on_cluster, status
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.on_cluster import PreparedExperiment
from determined_workflows.batch.status import JobState
from determined_workflows.batch.submission import Request

_WORDS = {"ERROR": status.FAILED, "CANCELED": status.CANCELLED, "QUEUED": "PENDING", "ACTIVE": "RUNNING"}


@dataclass
class Options:
    """Chooses master and user, as the flags before the noun do."""

    master: str | None
    user: str | None


def prepare(asked: Request, args: Namespace) -> tuple[Session, PreparedExperiment]:
    """Returns a session and the experiment of a request. Raises ConfigError; nothing was created then."""
    session = connection.connect(args.options)
    pools = [str(each["name"]) for each in session.get("/api/v1/resource-pools")["resourcePools"]]
    prepared = on_cluster.prepare(
        asked, pools, say, searcher=args.searcher, changes=args.config, is_dry_run=args.dry_run
    )
    return session, prepared


def submit(session: Session, prepared: PreparedExperiment, *, is_paused: bool) -> int:
    """Creates the experiment, and prints its id."""
    record, notes = on_cluster.submit(session, prepared, is_paused=is_paused)
    for note in notes:
        say(note)
    id = record.jobs[-1].id
    print(f"Created experiment {id}", flush=True)
    say(f"`det batch status {id}` shows it, `det batch logs -f {id}` prints its output")
    return 0


def state(record: JobRecord, args: Namespace) -> JobState:
    """Returns the state of the experiment in the words of the other targets; UNKNOWN if the master does not answer."""
    id = record.jobs[-1].id
    try:
        found = experiments.get(session_of(record, args), int(id))
    except DeterminedError as error:
        return JobState(id, None, status.UNKNOWN, error.message)
    word = without_prefix(display_state(found))
    return JobState(id, None, _WORDS.get(word, word), f"experiment {id} on {record.master}")


def show_logs(record: JobRecord, args: Namespace) -> int:
    """Prints the output of the first trial. Returns 1 if it was followed to an end that is not COMPLETED."""
    id = int(record.jobs[-1].id)
    if args.element is not None:
        raise ConfigError(f"--element has no effect with --on det; `det experiment list-trials {id}` lists the runs")
    session = session_of(record, args)
    if args.follow:
        from determined_cli.experiment.follow import follow

        return follow(session, id)
    trial_id = logs.find_first_trial(session, id)
    if trial_id is None:
        raise ConfigError(f"experiment {id} has no output yet; it has no trial")
    for line in logs.lines(session, trial_id):
        sys.stdout.write(str(line["log"]))
    sys.stdout.flush()
    say(f"the output of trial {trial_id}; `det experiment list-trials {id}` lists all")
    return 0


def stop(record: JobRecord, args: Namespace) -> str:
    """Cancels the experiment and returns its id. Raises Conflict if it has ended."""
    found = state(record, args)
    if found.state == status.UNKNOWN:
        raise MasterUnreachable(f"the state of {record.name} is unknown: {found.detail}")
    if found.state in (status.COMPLETED, *status.RETRIED):
        raise Conflict(f"nothing of {record.name} waits or runs: {found.state}")
    lifecycle.steer(session_of(record, args), int(found.id), "cancel")
    return found.id


def retry(record: JobRecord, args: Namespace) -> str:
    """Continues an experiment that has failed or was cancelled, and returns its id. Raises Conflict otherwise."""
    job_state = state(record, args)
    if job_state.state == status.UNKNOWN:
        raise MasterUnreachable(f"the state of {record.name} is unknown: {job_state.detail}")
    if job_state.state not in status.RETRIED:
        raise Conflict(f"nothing of {record.name} has failed: {job_state.state}")
    session = session_of(record, args)
    submissions.continue_experiment(session, int(job_state.id))
    return job_state.id


def session_of(record: JobRecord, args: Namespace) -> Session:
    """Returns a session with the cluster of a record."""
    return connection.connect(Options(record.master, args.options.user))
