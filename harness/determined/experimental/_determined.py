"""Connection of the SDK to a cluster: creates, finds and lists."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from determined.client import checkpoints, experiments, trials, users
from determined.client.certificates import NO_VERIFY, Trust
from determined.client.paging import items
from determined.client.sign_in import hashed, sign_in
from determined.errors import NotFound, NotImplementedYet
from determined.experimental import _account, _submission
from determined.experimental._account import User, Workspace
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._enums import ExperimentSortBy, ExperimentState, OrderBy
from determined.experimental._experiment import Experiment
from determined.experimental._metrics import TrialMetrics, stream_reports
from determined.experimental._trial import Trial

NOT_OFFERED = {
    **dict.fromkeys(
        ("create_model", "get_model", "get_model_by_id", "get_models", "get_model_labels"), "the model registry"
    ),
    **dict.fromkeys(("create_workspace", "delete_workspace"), "workspaces of one's own"),
    "list_oauth_clients": "OAuth clients",
}
"""Methods of the older SDK that this master does not serve yet, with what they are about."""


class Determined:
    """A connection to one cluster.

    Args:
        master: address such as ``http://host:8080``; ``DET_MASTER``, the last ``det up`` or localhost if not given.
        user: name; the stored sign-in or ``DET_USER`` if not given. Inside a task, the owner of the task.
        password: password; ``DET_PASS`` if not given.
        cert_path: file with the certificate of the master or of its authority, for https; ``DET_MASTER_CERT_FILE`` if
            not given.
        cert_name: name in that certificate, if it is not the host's; ``DET_MASTER_CERT_NAME`` if not given.
        noverify: True accepts every certificate.

    Raises:
        Unauthenticated: there is no sign-in, or the password is wrong.
        MasterUnreachable: no master answers at this address.
        UntrustedCertificate: the certificate of the master is not trusted.

    Example:
        >>> cluster = Determined("http://127.0.0.1:8080", "ann", "secret")   # doctest: +SKIP
        >>> cluster.list_experiments(states=[ExperimentState.PAUSED])        # doctest: +SKIP
        [Experiment(id=3, name='digits', state=PAUSED)]
    """

    def __init__(
        self,
        master: str | None = None,
        user: str | None = None,
        password: str | None = None,
        cert_path: str | None = None,
        cert_name: str | None = None,
        noverify: bool = False,
    ) -> None:
        trust = None
        if cert_path or cert_name or noverify:
            trust = Trust(file=NO_VERIFY if noverify else cert_path or "", name=cert_name or "")
        self._session = sign_in(master, user, password, trust=trust)

    def __enter__(self) -> "Determined":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Objects that came from it cannot ask the master any more."""
        self._session.close()

    def __getattr__(self, name: str) -> Callable[..., object]:
        """Returns a function that raises NotImplementedYet for a method of the older SDK that is not offered."""
        if name in NOT_OFFERED:
            return refusing(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def create_experiment(
        self,
        config: str | os.PathLike[str] | Mapping[str, object],
        model_dir: str | os.PathLike[str] | None = None,
        includes: Sequence[str | os.PathLike[str]] | None = None,
        parent_id: int | None = None,
        project_id: int | None = None,
        template: str | None = None,
        *,
        activate: bool = True,
    ) -> Experiment:
        """Creates an experiment and starts it.

        Args:
            config: path of a YAML file, or the configuration itself.
            model_dir: folder with the code, the context; ``.detignore`` in it excludes files.
            includes: more files and folders that are put into the context.
            parent_id: id of the experiment whose code is used in place of ``model_dir``.
            project_id: id of the project; the configuration's if not given.
            template: name of a template; not supported yet.
            activate: False leaves it paused.

        Returns:
            The experiment.

        Raises:
            ConfigError: the configuration is wrong; the text has every problem with its line.
            ContextError: the folder cannot be packed.
        """
        created = _submission.create(
            self._session, config, model_dir, includes or (), parent_id, project_id, template, activate=activate
        )
        return Experiment(self._session, created)

    def get_experiment(self, experiment_id: int) -> Experiment:
        """Returns an experiment.

        Args:
            experiment_id: its id.

        Raises:
            NotFound: there is none with this id.
        """
        return Experiment(self._session, experiments.get(self._session, experiment_id))

    def list_experiments(
        self,
        sort_by: ExperimentSortBy | None = None,
        order_by: OrderBy | None = None,
        experiment_ids: Sequence[int] | None = None,
        labels: Sequence[str] | None = None,
        users: Sequence[str] | None = None,
        states: Sequence[ExperimentState] | None = None,
        name: str | None = None,
        project_id: int | None = None,
        *,
        archived: bool | None = None,
        max_results: int | None = None,
    ) -> list[Experiment]:
        """Returns the experiments that match all given conditions.

        Args:
            sort_by: column; the id if not given.
            order_by: direction; ascending if not given.
            experiment_ids: only these ids.
            labels: only those with all of these labels.
            users: only those of these users, by name.
            states: only those in one of these states.
            name: only those whose name contains this text.
            project_id: only those of this project.
            archived: only archived ones, or only others; both if not given.
            max_results: at most so many.
        """
        query = {
            "sortBy": sort_by.value if sort_by else None,
            "orderBy": order_by.value if order_by else None,
            "experimentIdFilter.incl": list(experiment_ids or ()),
            "labels": list(labels or ()),
            "users": list(users or ()),
            "states": [state.value for state in states or ()],
            "name": name,
            "projectId": project_id,
            "archived": archived,
        }
        found = items(self._session, experiments.PREFIX, "experiments", query, limit=max_results)
        return [Experiment(self._session, each) for each in found]

    def get_trial(self, trial_id: int) -> Trial:
        """Returns a trial.

        Args:
            trial_id: its id.

        Raises:
            NotFound: there is none with this id.
        """
        return Trial(self._session, trials.get(self._session, trial_id))

    def get_checkpoint(self, uuid: str) -> Checkpoint:
        """Returns a checkpoint.

        Args:
            uuid: its id.

        Raises:
            NotFound: there is none with this id.
        """
        return Checkpoint(self._session, checkpoints.get(self._session, uuid))

    def iter_trials_metrics(self, trial_ids: Sequence[int], group: str | None = None) -> Iterator[TrialMetrics]:
        """Yields the reported metrics of several trials, by trial and then by time.

        Args:
            trial_ids: ids of the trials.
            group: ``training``, ``validation``, or a group of the script's own; all groups if not given.
        """
        return stream_reports(self._session, trial_ids, group or "")

    def stream_trials_metrics(self, trial_ids: Sequence[int], group: str) -> Iterator[TrialMetrics]:
        """Same as :meth:`iter_trials_metrics`, under its older name.

        Args:
            trial_ids: ids of the trials.
            group: name of the group.
        """
        return self.iter_trials_metrics(trial_ids, group)

    def stream_trials_training_metrics(self, trial_ids: Sequence[int]) -> Iterator[TrialMetrics]:
        """Yields the training metrics of several trials; older name.

        Args:
            trial_ids: ids of the trials.
        """
        return self.iter_trials_metrics(trial_ids, "training")

    def stream_trials_validation_metrics(self, trial_ids: Sequence[int]) -> Iterator[TrialMetrics]:
        """Yields the validation metrics of several trials; older name.

        Args:
            trial_ids: ids of the trials.
        """
        return self.iter_trials_metrics(trial_ids, "validation")

    def whoami(self) -> User:
        """Returns the user of this connection."""
        return User(self._session, users.me(self._session))

    def get_session_username(self) -> str:
        """Returns the name of the user of this connection."""
        return self.whoami().username

    def list_users(self, active: bool | None = None) -> list[User]:
        """Returns the users.

        Args:
            active: False includes the deactivated users.
        """
        return [User(self._session, each) for each in users.list_all(self._session, inactive=active is False)]

    def get_user_by_name(self, user_name: str) -> User:
        """Returns a user.

        Args:
            user_name: name to sign in with.

        Raises:
            NotFound: there is none with this name.
        """
        return User(self._session, users.by_name(self._session, user_name))

    def get_user_by_id(self, user_id: int) -> User:
        """Returns a user.

        Args:
            user_id: its id.

        Raises:
            NotFound: there is none with this id.
        """
        return User(self._session, self._session.get(f"{users.PREFIX}/{user_id}")["user"])

    def create_user(self, username: str, admin: bool = False, password: str | None = None) -> User:
        """Creates a user. Admins only.

        Args:
            username: name to sign in with.
            admin: True makes an admin.
            password: password; it is sent hashed.
        """
        return User(self._session, users.create(self._session, username, hashed(password or ""), admin=admin))

    def list_workspaces(self) -> list[Workspace]:
        """Returns the workspaces."""
        return list(_account.workspaces(self._session))

    def get_workspace(self, name: str) -> Workspace:
        """Returns a workspace.

        Args:
            name: its exact name.

        Raises:
            NotFound: there is none with this name.
        """
        found = next(_account.workspaces(self._session, name), None)
        if found is None:
            raise NotFound(f"workspace {name!r} not found")
        return found

    def logout(self) -> None:
        """Ends the session of this connection; its token cannot be used again."""
        users.log_out(self._session)
        self.close()


def refusing(name: str) -> Callable[..., object]:
    """Returns a function that raises NotImplementedYet for a method that is not offered."""

    def refuse(*_args: object, **_options: object) -> object:
        raise NotImplementedYet(f"{name}() is about {NOT_OFFERED[name]}, which this master does not offer yet")

    return refuse
