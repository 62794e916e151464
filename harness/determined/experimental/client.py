"""The Python SDK: creates, finds and steers experiments on a cluster, from scripts, notebooks and tasks.

The functions of this module use one connection. The first call opens it as ``det`` would: ``DET_MASTER`` and the stored
sign-in, or the task's own. :func:`login` chooses another; :class:`Determined` opens further ones. Only the standard
library is needed, except for packing a context.

Example:
    >>> from determined.experimental import client
    >>> experiment = client.create_experiment("config.yaml", "model/")     # doctest: +SKIP
    >>> experiment.wait()                                                   # doctest: +SKIP
    <ExperimentState.COMPLETED: 'STATE_COMPLETED'>
    >>> experiment.top_checkpoint().download("best")                        # doctest: +SKIP
    'best'
"""

import functools
import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from determined.experimental._account import Project, User, Workspace
from determined.experimental._checkpoint import Checkpoint, CheckpointTrainingMetadata
from determined.experimental._determined import NOT_OFFERED, Determined, refusing
from determined.experimental._enums import (
    CheckpointSortBy,
    CheckpointState,
    DownloadMode,
    ExperimentSortBy,
    ExperimentState,
    LogLevel,
    OrderBy,
    TrialSortBy,
    TrialState,
)
from determined.experimental._experiment import Experiment, ExperimentPaused
from determined.experimental._metrics import TrialMetrics
from determined.experimental._outputs import TrialOutputs
from determined.experimental._trial import Trial

P = ParamSpec("P")
R = TypeVar("R")

_connection: Determined | None = None


def login(
    master: str | None = None,
    user: str | None = None,
    password: str | None = None,
    cert_path: str | None = None,
    cert_name: str | None = None,
    noverify: bool = False,
) -> None:
    """Chooses the cluster and the user of this module's functions.

    Args:
        master: see :class:`Determined`.
        user: see :class:`Determined`.
        password: see :class:`Determined`.
        cert_path: see :class:`Determined`.
        cert_name: see :class:`Determined`.
        noverify: see :class:`Determined`.

    Raises:
        Unauthenticated: the password is wrong.

    Example:
        >>> client.login("http://127.0.0.1:8080", "ann", "secret")         # doctest: +SKIP
    """
    global _connection
    _connection = Determined(master, user, password, cert_path, cert_name, noverify)


def _current() -> Determined:
    global _connection
    if _connection is None:
        _connection = Determined()
    return _connection


def _of_current(method: Callable[Concatenate[Determined, P], R]) -> Callable[P, R]:
    """Returns a method of Determined as a function that uses the connection of this module."""

    @functools.wraps(method)
    def call(*args: P.args, **options: P.kwargs) -> R:
        return method(_current(), *args, **options)

    signature = inspect.signature(method)
    vars(call)["__signature__"] = signature.replace(parameters=list(signature.parameters.values())[1:])
    return call


def logout() -> None:
    """Ends the session of this module's connection; the next call opens a new one."""
    global _connection
    _current().logout()
    _connection = None


create_experiment = _of_current(Determined.create_experiment)
get_experiment = _of_current(Determined.get_experiment)
list_experiments = _of_current(Determined.list_experiments)
get_trial = _of_current(Determined.get_trial)
get_checkpoint = _of_current(Determined.get_checkpoint)
iter_trials_metrics = _of_current(Determined.iter_trials_metrics)
stream_trials_metrics = _of_current(Determined.stream_trials_metrics)
stream_trials_training_metrics = _of_current(Determined.stream_trials_training_metrics)
stream_trials_validation_metrics = _of_current(Determined.stream_trials_validation_metrics)
whoami = _of_current(Determined.whoami)
get_session_username = _of_current(Determined.get_session_username)
list_users = _of_current(Determined.list_users)
get_user_by_name = _of_current(Determined.get_user_by_name)
get_user_by_id = _of_current(Determined.get_user_by_id)
create_user = _of_current(Determined.create_user)
list_workspaces = _of_current(Determined.list_workspaces)
get_workspace = _of_current(Determined.get_workspace)


def __getattr__(name: str) -> Callable[..., object]:
    """Returns a function that raises NotImplementedYet for a function of the older SDK that is not offered."""
    if name in NOT_OFFERED:
        return refusing(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Checkpoint",
    "CheckpointSortBy",
    "CheckpointState",
    "CheckpointTrainingMetadata",
    "Determined",
    "DownloadMode",
    "Experiment",
    "ExperimentPaused",
    "ExperimentSortBy",
    "ExperimentState",
    "LogLevel",
    "OrderBy",
    "Project",
    "Trial",
    "TrialMetrics",
    "TrialOutputs",
    "TrialSortBy",
    "TrialState",
    "User",
    "Workspace",
    "create_experiment",
    "create_user",
    "get_checkpoint",
    "get_experiment",
    "get_session_username",
    "get_trial",
    "get_user_by_id",
    "get_user_by_name",
    "get_workspace",
    "iter_trials_metrics",
    "list_experiments",
    "list_users",
    "list_workspaces",
    "login",
    "logout",
    "stream_trials_metrics",
    "stream_trials_training_metrics",
    "stream_trials_validation_metrics",
    "whoami",
]
