"""Operations of Determined that this master does not offer yet; they answer 501 with a sentence."""

from collections.abc import Iterator

from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from determined.errors import NotImplementedYet
from determined_master.api.errors import response_of

PREFIX = "/api/v1"
_STARTS = (PREFIX, "/resources/", "/allocation/")


class UnsupportedOperations(BaseRoute):
    """Precedes all other routes, since ``/trials/time-series`` would match a trial. Uses a table look-up."""

    def __init__(self) -> None:
        self._by_shape: dict[tuple[str, int], list[tuple[str, list[str]]]] = {}
        for name, method, path in (*((name, method, PREFIX + path) for name, method, path in OPERATIONS), *PLAIN):
            parts = path.split("/")
            self._by_shape.setdefault((method, len(parts)), []).append((name, parts))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path: str = scope["path"]
        if scope["type"] == "http" and path.startswith(_STARTS):
            parts = path.split("/")
            for name, pattern in self._by_shape.get((scope["method"], len(parts)), ()):
                if all(part == wanted or wanted[:1] == "{" for part, wanted in zip(parts, pattern, strict=True)):
                    return Match.FULL, {"operation": name}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: Response = response_of(NotImplementedYet(f"this master does not support {scope['operation']} yet"))
        await response(scope, receive, send)


def _operations() -> Iterator[tuple[str, str, str]]:
    for line in _TABLE.split("\n")[1:-1]:
        name, method, path = line.split()
        yield name, method, path


_TABLE = """
GetAllocation GET /allocations/{allocationId}
AllocationAllGather POST /allocations/{allocationId}/all_gather
NotifyContainerRunning POST /allocations/{allocationId}/notify_container_running
PostAllocationProxyAddress POST /allocations/{allocationId}/proxy_address
MarkAllocationResourcesDaemon POST /allocations/{allocationId}/resources/{resourcesId}/daemon
AllocationPendingPreemptionSignal POST /allocations/{allocationId}/signals/pending_preemption
AllocationWaiting POST /allocations/{allocationId}/waiting
CheckpointsRemoveFiles POST /checkpoints/rm
GetTrialMetricsByCheckpoint GET /checkpoints/{checkpointUuid}/metrics
PostCheckpointMetadata POST /checkpoints/{checkpoint_uuid}/metadata
CleanupLogs POST /cleanup_logs
DeleteGlobalConfigPolicies DELETE /config-policies/global/{workloadType}
GetGlobalConfigPolicies GET /config-policies/global/{workloadType}
PutGlobalConfigPolicies PUT /config-policies/global/{workloadType}
DeleteWorkspaceConfigPolicies DELETE /config-policies/workspaces/{workspaceId}/{workloadType}
GetWorkspaceConfigPolicies GET /config-policies/workspaces/{workspaceId}/{workloadType}
PutWorkspaceConfigPolicies PUT /config-policies/workspaces/{workspaceId}/{workloadType}
PutExperiment PUT /experiments/by-external-id/{externalExperimentId}
MoveExperiment POST /experiments/{experimentId}/move
PutExperimentRetainLogs PUT /experiments/{experimentId}/retain_logs
DeleteTensorboardFiles DELETE /experiments/{experimentId}/tensorboard-files
GetExperimentValidationHistory GET /experiments/{experimentId}/validation-history
CreateGenericTask POST /generic-tasks
CreateGroup POST /groups
GetGroups POST /groups/search
DeleteGroup DELETE /groups/{groupId}
GetGroup GET /groups/{groupId}
UpdateGroup PUT /groups/{groupId}
GetJobs GET /job-queues
GetKubernetesResourceManagers GET /k8s-resource-managers
DeleteClusterMessage DELETE /master/cluster_message
GetClusterMessage GET /master/cluster_message
SetClusterMessage PUT /master/cluster_message
PatchMasterConfig PATCH /master/config
GetTelemetry GET /master/telemetry
GetModelLabels GET /model/labels
GetModels GET /models
PostModel POST /models
DeleteModel DELETE /models/{modelName}
GetModel GET /models/{modelName}
PatchModel PATCH /models/{modelName}
ArchiveModel POST /models/{modelName}/archive
MoveModel POST /models/{modelName}/move
UnarchiveModel POST /models/{modelName}/unarchive
GetModelVersions GET /models/{modelName}/versions
PostModelVersion POST /models/{modelName}/versions
DeleteModelVersion DELETE /models/{modelName}/versions/{modelVersionNum}
GetModelVersion GET /models/{modelName}/versions/{modelVersionNum}
PatchModelVersion PATCH /models/{modelName}/versions/{modelVersionNum}
GetTrialMetricsByModelVersion GET /models/{modelName}/versions/{modelVersionNum}/metrics
BulkAutoCreateWorkspaceNamespaceBindings POST /namespace-bindings/bulk-auto-create
GetWorkspacesWithDefaultNamespaceBindings GET /namespace-bindings/workspace-ids-with-default-bindings
GetNotebooks GET /notebooks
LaunchNotebook POST /notebooks
GetNotebook GET /notebooks/{notebookId}
KillNotebook POST /notebooks/{notebookId}/kill
IdleNotebook PUT /notebooks/{notebookId}/report_idle
SetNotebookPriority POST /notebooks/{notebookId}/set_priority
GetPermissionsSummary GET /permissions/summary
GetProjectByKey GET /projects/key/{key}
DeleteProject DELETE /projects/{id}
PatchProject PATCH /projects/{id}
ArchiveProject POST /projects/{id}/archive
UnarchiveProject POST /projects/{id}/unarchive
PutExperimentsRetainLogs PUT /projects/{projectId}/experiments/retain_logs
GetMetadataValues GET /projects/{projectId}/metadata/{key}
MoveProject POST /projects/{projectId}/move
AddProjectNote POST /projects/{projectId}/notes
PutProjectNotes PUT /projects/{projectId}/notes
UnbindRPFromWorkspace DELETE /resource-pools/{resourcePoolName}/workspace-bindings
ListWorkspacesBoundToRP GET /resource-pools/{resourcePoolName}/workspace-bindings
BindRPToWorkspace POST /resource-pools/{resourcePoolName}/workspace-bindings
OverwriteRPWorkspaceBindings PUT /resource-pools/{resourcePoolName}/workspace-bindings
ResourceAllocationAggregated GET /resources/allocation/aggregated
ResourceAllocationRaw GET /resources/allocation/raw
AssignRoles POST /roles/add-assignments
RemoveAssignments POST /roles/remove-assignments
ListRoles POST /roles/search
SearchRolesAssignableToScope POST /roles/search/by-assignability
GetRolesAssignedToGroup GET /roles/search/by-group/{groupId}
GetRolesByID POST /roles/search/by-ids
GetRolesAssignedToUser GET /roles/search/by-user/{userId}
GetGroupsAndUsersAssignedToWorkspace GET /roles/workspace/{workspaceId}
SearchRuns POST /runs
ArchiveRuns POST /runs/archive
DeleteRuns POST /runs/delete
KillRuns POST /runs/kill
MoveRuns POST /runs/move
PauseRuns POST /runs/pause
ResumeRuns POST /runs/resume
UnarchiveRuns POST /runs/unarchive
GetActiveTasksCount GET /tasks/count
GetTaskAcceleratorData GET /tasks/{taskId}/acceleratorData
GetGenericTaskConfig GET /tasks/{taskId}/config
PauseGenericTask POST /tasks/{taskId}/pause
UnpauseGenericTask POST /tasks/{taskId}/unpause
PatchTemplateName PATCH /template/rename
GetTemplates GET /templates
DeleteTemplate DELETE /templates/{templateName}
GetTemplate GET /templates/{templateName}
PatchTemplateConfig PATCH /templates/{templateName}
PostTemplate POST /templates/{template_name}
PutTemplate PUT /templates/{template_name}
GetTensorboards GET /tensorboards
LaunchTensorboard POST /tensorboards
GetTensorboard GET /tensorboards/{tensorboardId}
KillTensorboard POST /tensorboards/{tensorboardId}/kill
SetTensorboardPriority POST /tensorboards/{tensorboardId}/set_priority
GetAccessTokens GET /tokens
PostAccessToken POST /tokens
PatchAccessToken PATCH /tokens/{tokenId}
ReportTrialSourceInfo POST /trial-source-info
CreateTrial POST /trials
PutTrial PUT /trials
GetTrialByExternalID GET /trials/by-external-id/{externalExperimentId}/{externalTrialId}
PostTrialProfilerMetricsBatch POST /trials/profiler/metrics
GetTrialRemainingLogRetentionDays GET /trials/{id}/remaining_log_retention_days
GetTrialProfilerMetrics GET /trials/{labels_trialId}/profiler/metrics
ReportTrialTrainingMetrics POST /trials/{trainingMetrics_trialId}/training_metrics
PatchTrial PATCH /trials/{trialId}
GetTrialProfilerAvailableSeries GET /trials/{trialId}/profiler/available_series
PutTrialRetainLogs PUT /trials/{trialId}/retain_logs
StartTrial POST /trials/{trialId}/start
ReportTrialValidationMetrics POST /trials/{validationMetrics_trialId}/validation_metrics
GetProjectsByUserActivity GET /user/projects/activity
PatchUsers PATCH /users
PostUserActivity POST /users/activity
AssignMultipleGroups PATCH /users/assignments
SetUserPassword POST /users/{userId}/password
GetWebhooks GET /webhooks
PostWebhook POST /webhooks
PostWebhookEventData POST /webhooks/custom
DeleteWebhook DELETE /webhooks/{id}
PatchWebhook PATCH /webhooks/{id}
TestWebhook POST /webhooks/{id}/test
PostWorkspace POST /workspaces
DeleteWorkspace DELETE /workspaces/{id}
PatchWorkspace PATCH /workspaces/{id}
ArchiveWorkspace POST /workspaces/{id}/archive
GetKubernetesResourceQuotas GET /workspaces/{id}/get-k8s-resource-quotas
ListWorkspaceNamespaceBindings GET /workspaces/{id}/list-namespace-bindings
PinWorkspace POST /workspaces/{id}/pin
SetResourceQuotas POST /workspaces/{id}/set-resource-quota
UnarchiveWorkspace POST /workspaces/{id}/unarchive
UnpinWorkspace POST /workspaces/{id}/unpin
ListRPsBoundToWorkspace GET /workspaces/{workspaceId}/available-resource-pools
DeleteWorkspaceNamespaceBindings DELETE /workspaces/{workspaceId}/namespace-bindings
SetWorkspaceNamespaceBindings POST /workspaces/{workspaceId}/namespace-bindings
PostProject POST /workspaces/{workspaceId}/projects
"""
OPERATIONS: tuple[tuple[str, str, str], ...] = tuple(_operations())
"""Name, method, and path below ``/api/v1``."""
PLAIN: tuple[tuple[str, str, str], ...] = (
    ("ResourceAllocationRaw", "GET", "/resources/allocation/raw"),
    ("ResourceAllocationAggregated", "GET", "/resources/allocation/aggregated"),
    ("ResourceAllocations", "GET", "/resources/allocation/allocations-csv"),
    ("ResourceAllocations", "GET", "/allocation/allocations-csv"),
)
"""Name, method and path of operations outside of ``/api/v1``."""
