"""Pages of tasks: opens ports of tasks for their owners and admins, and keeps what belongs to their origins."""

from determined_master.clock import Clock
from determined_master.db.session import Database
from determined_master.proxy import declared_ports, task_queries
from determined_master.proxy.addresses import Place
from determined_master.proxy.origins import Origins
from determined_master.proxy.task_network import TaskNetwork
from determined_master.proxy.task_port import TaskPort
from determined_master.proxy.visits import SignIn, Visits
from determined_master.streams import target
from determined_master.tasks import repository as tasks
from determined_master.users.authorization import Authorization

ENTER = "/.detent/enter"
"""Path of every origin at which a ticket is taken."""
CHECK_SECONDS = 15.0


class TaskPages:
    """The pages of tasks.

    Example::

        url = await pages.open(sign_in, "3.f2b", 8888, "/lab", place, "http://127.0.0.1:8080")
        # http://localhost:8100/.detent/enter?ticket=..., valid once and for half a minute
    """

    def __init__(
        self,
        database: Database,
        authorization: Authorization,
        network: TaskNetwork,
        origins: Origins,
        clock: Clock,
    ) -> None:
        self._database, self._authorization = database, authorization
        self.network, self.origins = network, origins
        self.visits = Visits(clock)

    async def open(self, sign_in: SignIn, task_id: str, port: int | None, path: str, place: Place, cluster: str) -> str:
        """Returns an address at which the user enters a port of a task, once and soon.

        Args:
            sign_in: the user's.
            task_id: the task, which has to run.
            port: a port of its chief; None for the declared default.
            path: where the user goes on, with a query if it has one.
            place: how the user has reached the master.
            cluster: address of the cluster's pages for this user.

        Raises NotFound, also without a port, Forbidden for anyone but the owner and admins, and Conflict if the task
        does not run.
        """
        service, owner_id = await self.find(sign_in, task_id, port)
        address = await self.origins.open(service, owner_id, place, cluster)
        ticket = self.visits.make_ticket(service, owner_id, sign_in, path)
        return f"{address}{ENTER}?ticket={ticket}"

    async def find(self, sign_in: SignIn, task_id: str, port: int | None) -> tuple[TaskPort, int]:
        """Returns a port of a task that runs, and its owner. Raises as ``open`` does."""
        async with self._database.read() as session:
            await target.find(session, self._authorization, sign_in.user, task_id, 0)
            task = await tasks.get(session, task_id)
            if port is None:
                config = await task_queries.config_of(session, task)
                port = declared_ports.default_port(declared_ports.declared(config), task_id)
        return TaskPort(task_id, port), task.user_id

    async def close(self) -> None:
        """Ends all connections. The origins are open again after the next start."""
        self.visits.end_all()
        await self.origins.close_all()
        await self.network.close()

    async def tick(self) -> None:
        """Ends visits without a right, and closes the origins of tasks that have ended and those that nobody uses."""
        await self.visits.check()
        task_ids = {each.service.task_id for each in self.origins}
        if task_ids:
            async with self._database.read() as session:
                ended = await task_queries.ended(session, task_ids)
            for each in self.origins:
                if each.service.task_id in ended:
                    self.origins.note_ended(each)
        await self.network.close_idle()
        for each in self.origins.due():
            if not self.origins.is_due(each):
                continue  # opened again while another one was closed
            self.visits.end_of(each.service)
            await self.origins.close(each)
