"""Describes an event in a sentence. Pure. Unknown kinds are described by their name."""

from collections.abc import Callable, Mapping
from typing import Any

from determined.states import exit_phrase

Payload = Mapping[str, Any]
SYSTEM = "system"
_MOVED = {
    "ACTIVE": "was activated",
    "PAUSED": "was paused",
    "STOPPING_CANCELED": "was asked to stop",
    "STOPPING_KILLED": "was killed",
    "STOPPING_COMPLETED": "is completing",
    "STOPPING_ERROR": "is failing",
    "STOPPING": "is being killed",
    "COMPLETED": "completed",
    "CANCELED": "was canceled",
    "ERROR": "failed",
    "DELETING": "is being deleted",
    "DELETED": "was deleted",
    "DELETE_FAILED": "could not be deleted",
}
_BY_PEOPLE = {
    "ACTIVE": "activated {what}",
    "PAUSED": "paused {what}",
    "STOPPING_CANCELED": "asked {what} to stop",
    "STOPPING_KILLED": "killed {what}",
    "STOPPING": "killed {what}",
    "DELETING": "deleted {what}",
}
SLOT_STATUSES = {
    "free": "is as usual again",
    "idle": "is idle",
    "occupied": "is used by others",
    "unhealthy": "is unhealthy",
}


def sentence(kind: str, actor: str, target_type: str, target_id: str, payload: Payload) -> str:
    what = f"{target_type} {target_id}"
    made = _SENTENCES.get((target_type, kind))
    if made is not None:
        return made(actor, target_id, payload)
    if kind == "moved":
        return _moved(actor, what, payload)
    if target_type == "agent" and kind.startswith("slot_"):
        _, slot, done = kind.split("_", 2)
        if done in SLOT_STATUSES:
            reason = f": {payload['reason']}" if payload.get("reason") else ""
            return f"slot {slot} of {what} {SLOT_STATUSES[done]}{reason}"
        return f"{actor} {done} slot {slot} of {what}"
    words = kind.replace("_", " ")
    return f"{what} {words}" if actor == SYSTEM else f"{actor} {words} {what}"


def attempt(allocation_id: str) -> str:
    """Formats an allocation id such as ``5.uuid.2`` for a sentence."""
    task, _, run = allocation_id.rpartition(".")
    experiment, _, request = task.partition(".")
    if experiment and request:
        return f"attempt {run} of a trial of experiment {experiment}"
    return f"attempt {run} of task {task}" if task else f"attempt {allocation_id}"


def _moved(actor: str, what: str, payload: Payload) -> str:
    to = str(payload.get("to"))
    if actor != SYSTEM and to in _BY_PEOPLE:
        return f"{actor} {_BY_PEOPLE[to].format(what=what)}"
    why = payload.get("reason")
    end = f" ({exit_phrase(str(why))})" if why and str(why).upper() != to else ""
    message = f": {payload['message']}" if payload.get("message") else ""
    return f"{what} {_MOVED.get(to, f'became {to}')}{end}{message}"


def _created(actor: str, target_id: str, payload: Payload) -> str:
    origin = f", forked from {payload['forked_from']}" if payload.get("forked_from") else ""
    return f"{actor} created experiment {target_id} ({payload.get('name', '')}{origin})"


def _continued(actor: str, target_id: str, payload: Payload) -> str:
    changed = ", ".join(map(str, payload.get("changed") or []))
    return f"{actor} continued experiment {target_id}" + (f" with another {changed}" if changed else "")


def _decided(_actor: str, target_id: str, payload: Payload) -> str:
    return f"the search decided on trial {target_id}: {payload.get('reason', '')}"


def _matched(_actor: str, target_id: str, payload: Payload) -> str:
    sequel = f": {payload['sequel']}" if payload.get("sequel") else ""
    return f"a line of trial {target_id} matched {payload.get('policy')}{sequel}"


def _launched(actor: str, target_id: str, payload: Payload) -> str:
    kind = str(payload.get("kind") or "task").lower().replace("_", " ")
    return f"{actor} launched {kind} {target_id} ({payload.get('description', '')})"


def _changed(kind: str) -> Callable[[str, str, Payload], str]:
    def made(actor: str, target_id: str, payload: Payload) -> str:
        fields = ", ".join(map(str, payload.get("fields") or ["something"]))
        return f"{actor} changed {fields} of {kind} {target_id}"

    return made


def _placed(_actor: str, target_id: str, payload: Payload) -> str:
    parts = payload.get("parts") or []
    where = "; ".join(f"{part['agent']} (slots {', '.join(map(str, part['slots'])) or 'none'})" for part in parts)
    return f"{attempt(target_id)} was placed on {where}"


def _ended(_actor: str, target_id: str, payload: Payload) -> str:
    reason = exit_phrase(str(payload.get("reason", "")))
    code = f" with code {payload['code']}" if payload.get("code") else ""
    message = str(payload.get("message") or "").split("\n")[0][:200]
    return f"{attempt(target_id)} ended: {reason}{code}" + (f": {message}" if message else "")


def _provided(done: str) -> Callable[[str, str, Payload], str]:
    """Sentences about agents that the provider of a pool starts and ends."""

    def made(_actor: str, target_id: str, payload: Payload) -> str:
        reason = f": {payload['reason']}" if payload.get("reason") else ""
        return f"agent {target_id} of pool {payload.get('pool')} {done}{reason}"

    return made


def _folders_left(_actor: str, target_id: str, payload: Payload) -> str:
    folders = payload.get("folders") or []
    first = f": {str(folders[0])[:300]}" if folders else ""
    count = payload.get("count")
    return f"experiment {target_id} was deleted, but files of {count} checkpoints could not be deleted{first}"


def _checkpoints_deleted(_actor: str, target_id: str, payload: Payload) -> str:
    return f"the checkpoint policy of experiment {target_id} deletes {_checkpoints(payload)}"


def _checkpoints(payload: Payload) -> str:
    count = payload.get("count")
    return f"{count} checkpoint" if count == 1 else f"{count} checkpoints"


_SENTENCES: Mapping[tuple[str, str], Callable[[str, str, Payload], str]] = {
    ("experiment", "created"): _created,
    ("experiment", "changed"): _changed("experiment"),
    ("experiment", "continued"): _continued,
    ("experiment", "checkpoints_deleted"): _checkpoints_deleted,
    ("experiment", "folders_left"): _folders_left,
    ("experiment", "search_changed"): lambda actor, target, said: (
        f"{actor} set {' and '.join(f'{name} to {value}' for name, value in said.items())} of experiment {target}"
    ),
    ("trial", "created"): _decided,
    ("trial", "kept"): _decided,
    ("trial", "stopped"): _decided,
    ("trial", "log_policy_matched"): _matched,
    ("trial", "log_policies_off"): lambda _actor, target, _: (
        f"comparing the log of trial {target} with its log policies takes too long; the attempt is not compared further"
    ),
    ("task", "created"): _launched,
    ("task", "changed"): _changed("task"),
    ("user", "changed"): _changed("user"),
    ("user", "created"): lambda actor, target, _: f"{actor} created user {target}",
    ("user", "logged_in"): lambda actor, _target, _: f"{actor} signed in",
    ("user", "link_made"): lambda actor, target, _: f"{actor} created a sign-in link for user {target}",
    ("checkpoint", "outputs_kept"): lambda _actor, target, said: (
        f"trial {said.get('trial')} stored its outputs as checkpoint {target}"
    ),
    ("checkpoint", "reported"): lambda _actor, target, said: (
        f"trial {said.get('trial')} saved checkpoint {target} at step {said.get('steps')}"
    ),
    ("allocation", "requested"): lambda _actor, target, said: (
        f"{attempt(target)} requested {said.get('slots')} slots of pool {said.get('pool')}"
    ),
    ("allocation", "placed"): _placed,
    ("allocation", "ready"): lambda _actor, target, _: f"{attempt(target)} is running",
    ("allocation", "preemption_requested"): lambda _actor, target, _: (
        f"{attempt(target)} was asked to save a checkpoint and exit"
    ),
    ("allocation", "preemption_acknowledged"): lambda _actor, target, _: (
        f"{attempt(target)} saves a checkpoint and exits"
    ),
    ("allocation", "kill_requested"): lambda _actor, target, said: (
        f"{attempt(target)} is being killed" + (f": {said['message']}" if said.get("message") else "")
    ),
    ("allocation", "ended"): _ended,
    ("agent", "departure_known"): lambda _actor, target, said: f"agent {target}: {said.get('reason')}",
    ("agent", "ordered"): lambda _actor, target, said: f"pool {said.get('pool')} starts agent {target}",
    ("agent", "started"): _provided("has started"),
    ("agent", "not_started"): _provided("did not start"),
    ("agent", "released"): _provided("is being ended"),
    ("agent", "ended"): _provided("has ended"),
    ("agent", "not_ended"): _provided("could not be ended and is tried again"),
}

_ALL_PARTS: Payload = {
    "forked_from": 1,
    "parts": [{"agent": "", "slots": []}],
    "code": 1,
    "message": "x",
    "folders": ["x"],
    "changed": ["x"],
    "sequel": "x",
}
"""Payload that gives a sentence each of its optional parts."""

TEMPLATES: Mapping[tuple[str, str], str] = {key: made("", "1.task.1", _ALL_PARTS) for key, made in _SENTENCES.items()}
"""Target type and kind → the sentence around the values. A search finds its words, which no column holds."""

MOVES: Mapping[str, str] = {to: f"{said} {_BY_PEOPLE.get(to, '')}" for to, said in _MOVED.items()}
"""State → the words for the change into it."""
