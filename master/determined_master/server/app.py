"""``create_app``: routers, fast path, error handlers, lifespan."""

from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from determined_master import notifications
from determined_master.api import agent_link, errors, stream_endpoint
from determined_master.api.change_feed import ChangeFeed
from determined_master.api.detent import (
    checkpoint_files,
    checkpoint_removals,
    cluster_overview,
    contexts,
    drain,
    event_stream,
    events,
    experiment_code,
    experiment_config,
    experiment_status,
    id_prefixes,
    metric_series,
    search_decisions,
    search_task,
    sign_in,
    storage,
    task_pages,
    task_streams,
    trial_progress,
    why,
)
from determined_master.api.detent import experiment_list as experiment_table
from determined_master.api.detent import job_queue as job_updates
from determined_master.api.detent import logs as log_pages
from determined_master.api.fast.dispatch import FastPath, HotRoute
from determined_master.api.fast.openapi import add_hot
from determined_master.api.fast.routes import FastRoutes
from determined_master.api.forwarded_headers import ForwardedHeaders
from determined_master.api.proxy import tunnel_endpoint
from determined_master.api.proxy.cluster_proxy import ClusterProxy
from determined_master.api.proxy.origin_app import OriginApp, choose_by_host
from determined_master.api.rate_limit import RateLimit
from determined_master.api.request_normalizer import RequestNormalizer
from determined_master.api.schemas.base import WIRE_VERSION
from determined_master.api.stream_admission import StreamAdmission
from determined_master.api.v1 import (
    agents,
    allocations,
    bulk_actions,
    checkpoints,
    cluster,
    commands,
    context_files,
    experiment_create,
    experiment_list,
    experiments,
    job_queue,
    logs,
    metric_streams,
    metrics,
    preview_search,
    prometheus,
    resource_pools,
    retention,
    tasks,
    trials,
    unsupported_operations,
    user_settings,
    users,
    workspaces,
)
from determined_master.server.lifespan import lifespan
from determined_master.web import api_page
from determined_master.web.assets import PageFiles, page_folder
from determined_master.web.compression import Compression
from determined_master.web.docs_site import DocsSite, docs_folder
from determined_master.web.outer_middleware import OuterMiddleware
from determined_master.web.pages import Pages
from determined_master.wiring.services import Services

ROUTERS = (
    cluster.router,
    prometheus.router,
    preview_search.router,
    drain.router,
    user_settings.router,  # before users: ``setting`` is not a user id
    users.router,
    workspaces.router,
    experiment_create.router,
    experiments.router,
    metrics.router,
    metric_streams.router,
    metric_series.router,
    trials.router,
    tasks.router,
    logs.router,
    log_pages.router,
    context_files.router,
    checkpoints.router,
    retention.router,
    allocations.router,
    agents.router,
    job_queue.router,
    job_updates.router,
    resource_pools.router,
    *commands.routers,
    contexts.router,
    search_decisions.router,
    search_task.router,
    trial_progress.router,
    why.router,
    experiment_status.router,
    experiment_config.router,
    experiment_code.router,
    checkpoint_files.router,
    checkpoint_removals.router,
    cluster_overview.router,
    events.router,
    storage.router,
    id_prefixes.router,
    sign_in.router,
    event_stream.router,
    experiment_table.router,
    experiment_list.router,
    bulk_actions.router,
    task_streams.router,
    task_pages.router,
)

METRICS_PATH = "/api/v1/trials/{trial_id:int}/metrics"
REPORTS_PATH = "/detent/trials/{trial_id:int}/reports"
LOGS_PATH = "/api/v1/task/logs"
OUTPUT_PATH = "/detent/agents/{agent_id}/output"
HOT = (METRICS_PATH, REPORTS_PATH, LOGS_PATH, OUTPUT_PATH)
"""Paths that only the fast path serves; they are routes of the app as well, so that the route table lists them."""
RENDEZVOUS_PATH = "/api/v1/allocations/{allocation_id}/resources/{resources_id}/rendezvous"


class RowIdConvertor(IntegerConvertor):
    """Matches the digits of an id in a path."""

    regex = "[0-9]{1,19}"


register_url_convertor("row_id", RowIdConvertor())


class App(FastAPI):
    """FastAPI behind the outermost middleware and the fast path, whose routes its OpenAPI document lists too."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            title="Detent",
            version=WIRE_VERSION,
            lifespan=lifespan,
            redirect_slashes=False,
            docs_url=None,
            openapi_url=api_page.OPENAPI_PATH,
            redoc_url=None,
        )
        self.state.services = services
        self.state.page_files = PageFiles(services.settings.webui or page_folder())
        self.state.rate_limit = RateLimit()
        published = services.notifications
        is_followed = partial(published.has_subscribers, notifications.FEED)
        self.state.feed = ChangeFeed(lambda: services.identity.epoch, published.publish, is_followed)
        published.observers.append(self.state.feed.on_topics)
        self.hot = _hot_routes(services)
        edge: ASGIApp = OuterMiddleware(FastPath(super().__call__, self.hot, self), services.settings.base_path)
        domain = services.settings.proxy_domain
        self._edge = choose_by_host(origin_app(services), edge, domain) if domain else edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._edge(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            add_hot(super().openapi(), (path.replace(":int", "") for path in HOT))
        return super().openapi()


def create_app(services: Services) -> FastAPI:
    app = App(services)
    errors.install(app, services.storage.note_failure)
    app.add_middleware(RequestNormalizer)
    # Not by uvicorn, which would apply it to the fast path too.
    app.add_middleware(ForwardedHeaders, trusted=services.settings.trusted_proxies)
    app.add_middleware(StreamAdmission)
    app.add_middleware(Compression)
    app.router.routes.append(unsupported_operations.UnsupportedOperations())
    # Not ``int``, which fails at a number of thousands of digits.
    paths = ((r.path.replace(":int", ":row_id"), r.handler) for r in app.hot if r.path in HOT)
    app.router.routes.extend(Route(path, handler, methods=["POST"]) for path, handler in paths)
    app.router.routes.append(Route(api_page.PATH, api_page.show))
    app.router.routes.append(WebSocketRoute(agent_link.PATH, _agent_endpoint(services).serve))
    streams = stream_endpoint.StreamEndpoint(services.streams, services.authenticator, services.notifications)
    app.router.routes.append(WebSocketRoute(stream_endpoint.PATH, streams.serve))
    for router in ROUTERS:
        # Not include_router, which looks at each route of each router anew for every request.
        app.router.routes.extend(router.routes)
    tunnels = tunnel_endpoint.TunnelEndpoint(
        services.streams,
        services.database,
        services.authenticator,
        services.authorization,
        services.secrets,
        services.notifications,
        services.clock,
    )
    app.router.routes.append(ClusterProxy(services.pages, services.authenticator, tunnels))
    app.router.routes.append(DocsSite(docs_folder()))
    app.router.routes.append(Pages(app.state.page_files, services.settings.base_path))
    return app


def origin_app(services: Services) -> ASGIApp:
    """Returns the application of the origins of tasks."""
    return ForwardedHeaders(OriginApp(services.pages), services.settings.trusted_proxies)


def _hot_routes(services: Services) -> tuple[HotRoute, ...]:
    fast = FastRoutes(
        services.authenticator,
        services.access,
        services.database,
        services.writer,
        services.metrics,
        services.logs,
        services.rendezvous,
    )
    return (
        HotRoute("POST", METRICS_PATH, fast.report_metrics),
        HotRoute("POST", REPORTS_PATH, fast.report_batch),
        HotRoute("POST", LOGS_PATH, fast.post_logs),
        HotRoute("POST", OUTPUT_PATH, fast.post_output),
        HotRoute("GET", RENDEZVOUS_PATH, fast.rendezvous),
    )


def _agent_endpoint(services: Services) -> agent_link.AgentEndpoint:
    return agent_link.AgentEndpoint(
        settings=services.settings,
        identity=services.identity,
        authenticator=services.authenticator,
        agents=services.agents,
        registry=services.registry,
        database=services.database,
        secrets=services.secrets,
        notifications=services.notifications,
    )
