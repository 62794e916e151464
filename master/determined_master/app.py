"""``create_app``: routers, hot routes, error handler, lifespan."""

from typing import Any

from fastapi import FastAPI
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from determined_master import errors
from determined_master.agents import endpoints as agents
from determined_master.agents import link
from determined_master.allocations import endpoints as allocations
from determined_master.checkpoints import browsing
from determined_master.checkpoints import endpoints as checkpoints
from determined_master.cluster import drain, overview
from determined_master.cluster import endpoints as cluster
from determined_master.columns import bulk, older
from determined_master.columns import endpoints as columns
from determined_master.events import endpoints as events
from determined_master.experiments import creating, doing, extensions, files, told
from determined_master.experiments import endpoints as experiments
from determined_master.ingest import routes as hot
from determined_master.ingest.lane import Handler, Lane
from determined_master.ingest.schema import add_hot
from determined_master.lifespan import lifespan
from determined_master.logs import endpoints as logs
from determined_master.logs import pages
from determined_master.master import Master
from determined_master.metrics import endpoints as metrics
from determined_master.metrics import plots, streams
from determined_master.trials import doing as trials_doing
from determined_master.trials import endpoints as trials
from determined_master.trials import tasks
from determined_master.users import endpoints as users
from determined_master.users import places, preferences
from determined_master.web import api_page, sign_in, stream
from determined_master.web.assets import PageFiles, page_folder
from determined_master.web.edge import Edge
from determined_master.web.feed import Feed
from determined_master.web.pages import Pages
from determined_master.web.patience import Patience
from determined_master.wire import not_yet
from determined_master.wire.dialect import Dialect

ROUTERS = (
    cluster.router,
    drain.router,
    preferences.router,  # before the users: ``setting`` is no user's number
    users.router,
    places.router,
    creating.router,
    experiments.router,
    metrics.router,
    streams.router,
    plots.router,
    trials.router,
    tasks.router,
    logs.router,
    pages.router,
    files.router,
    checkpoints.router,
    allocations.router,
    agents.router,
    extensions.router,
    doing.router,
    told.router,
    trials_doing.router,
    browsing.router,
    overview.router,
    events.router,
    sign_in.router,
    stream.router,
    columns.router,
    older.router,
    bulk.router,
)

HOT: tuple[tuple[str, Handler], ...] = (
    ("/api/v1/trials/{trial_id:int}/metrics", hot.report_metrics),
    ("/api/v1/task/logs", hot.post_logs),
    ("/detent/agents/{agent_id}/output", hot.post_output),
)
"""Served in their own lane; routes as well, so that the table of routes names them."""


class App(FastAPI):
    """FastAPI behind the edge and the lane of the hot routes, which its OpenAPI page names too."""

    def __init__(self, master: Master, **settings: Any) -> None:
        super().__init__(**settings)
        self.state.master = master
        self.state.page_files = PageFiles(master.settings.webui or page_folder())
        self.state.patience = Patience()
        self.state.feed = Feed(lambda: master.epoch, master.hints.send)
        master.hints.taps.append(self.state.feed.hear)
        self._edge = Edge(Lane(super().__call__, HOT, self), master.settings.base_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._edge(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            add_hot(super().openapi(), (path.replace(":int", "") for path, _handler in HOT))
        return super().openapi()


def create_app(master: Master) -> FastAPI:
    app = App(
        master,
        title="Detent",
        version=cluster.WIRE_VERSION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        openapi_url=api_page.OPENAPI_PATH,
        redoc_url=None,
    )
    errors.install(app)
    app.add_middleware(Dialect)
    # Not by uvicorn, which would do it for the hot routes too.
    app.add_middleware(ProxyHeadersMiddleware)
    app.router.routes.append(not_yet.NotYet())
    app.router.routes.extend(Route(path, handler, methods=["POST"]) for path, handler in HOT)
    app.router.routes.append(WebSocketRoute(link.PATH, link.serve))
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes.append(Route(api_page.PATH, api_page.show))
    app.router.routes.append(Pages(app.state.page_files, master.settings.base_path))
    return app
