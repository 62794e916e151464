"""Requests about one allocation."""

from typing import Any

from determined.client.session import FOR_EVER, Retry, Session

PREFIX = "/api/v1/allocations"
LONG_POLL_MARGIN = 10.0


def rendezvous(session: Session, allocation_id: str, resources_id: str) -> dict[str, Any]:
    """Returns ``{addresses, rank, slots}``; blocks until every container of the allocation has asked."""
    path = f"{PREFIX}/{allocation_id}/resources/{resources_id}/rendezvous"
    answer = session.get(path, timeout=3600.0, retry=FOR_EVER)
    return dict(answer["rendezvousInfo"])


def preemption(session: Session, allocation_id: str, timeout_seconds: int, retry: Retry | None = None) -> bool:
    """Returns True if the allocation is to be preempted; waits up to ``timeout_seconds`` for that."""
    answer = session.get(
        f"{PREFIX}/{allocation_id}/signals/preemption",
        {"timeoutSeconds": timeout_seconds},
        timeout=timeout_seconds + LONG_POLL_MARGIN,
        retry=retry,
    )
    return bool(answer.get("preempt"))


def acknowledge_preemption(session: Session, allocation_id: str) -> None:
    """Acknowledges a preemption: exit code 0 then means "not finished"."""
    session.post(f"{PREFIX}/{allocation_id}/signals/ack_preemption", {"allocationId": allocation_id}, retry=FOR_EVER)
