"""``det command``: the requests that it sends, and its output."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from determined.errors import ConfigError
from determined_cli.command_noun.run import configuration

from .conftest import Det, FakeMaster, Request, Stream, error

ID, OTHER = "3f2b8c1e-0000-4000-8000-000000000001", "7a000000-0000-4000-8000-000000000002"
COMMAND = {
    "id": ID,
    "description": "Command (quiet-owl)",
    "state": "STATE_RUNNING",
    "startTime": "2026-01-01T00:00:00Z",
    "username": "admin",
    "resourcePool": "default",
    "jobId": "j",
    "slots": 1,
    "priority": 42,
    "container": {"id": "c", "state": "STATE_RUNNING", "parent": "agent-1"},
}
ENDED = {**COMMAND, "state": "STATE_TERMINATED", "exitStatus": "exited with code 7", "exitCode": 7}
C = "/api/v1/commands"


@pytest.fixture(autouse=True)
def prepared_answers(fake: FakeMaster) -> None:
    commands = [COMMAND, {**COMMAND, "id": OTHER}]
    fake.answers.update(
        {
            f"POST {C}": {"command": COMMAND, "config": {}},
            f"GET {C}": {"commands": commands, "pagination": {"total": 2, "endIndex": 2}},
            f"GET {C}/{ID}": {"command": ENDED, "config": {"entrypoint": ["ls"]}},
            f"GET /api/v1/tasks/{ID}/logs": Stream([{"id": "1", "message": "a line\n"}]),
            f"POST {C}/{ID}/kill": {"command": ENDED},
            f"POST {C}/{ID}/set_priority": {"command": ENDED},
            "GET /api/v1/me": {"user": {"username": "admin", "id": 1}},
        }
    )


def sent_body(fake: FakeMaster) -> Any:
    return fake.requests_to(f"POST {C}")[-1].json


def test_command_run_prints_the_log_and_exits_with_the_code_of_the_command(det: Det, fake: FakeMaster):
    done = det("command", "run", "python3", "work.py", "--fast")
    assert (done.code, done.out) == (7, "a line\n")
    assert f"Launched command {ID} (Command (quiet-owl))" in done.err
    assert "ended: exited with code 7" in done.err
    assert sent_body(fake) == {"config": {"entrypoint": ["python3", "work.py", "--fast"]}}


def test_command_run_exits_with_1_if_the_command_has_no_exit_code(det: Det, fake: FakeMaster):
    fake.answers[f"GET {C}/{ID}"] = {"command": {**ENDED, "exitCode": None, "exitStatus": "killed by a user"}}
    assert det("cmd", "run", "ls").code == 1


def test_command_run_detached_prints_only_the_id(det: Det, fake: FakeMaster):
    done = det("cmd", "run", "-d", "ls")
    assert (done.code, done.out) == (0, f"{ID}\n")
    assert fake.requests_to(f"GET {C}/{ID}") == []


def test_command_run_joins_file_flags_and_volumes_to_one_configuration(det: Det, fake: FakeMaster, tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "description: mine\nentrypoint: [old]\nresources: {slots: 4}\nbind_mounts: [{host_path: /a, container_path: /b}]\n"
    )
    done = det(
        "cmd",
        "run",
        "-d",
        "--config-file",
        str(file),
        "--config",
        "resources.slots=0",
        "-v",
        "/data:/in",
        "--",
        "ls",
        "-l",
    )
    assert done.code == 0, done.err
    mounts = [{"host_path": "/a", "container_path": "/b"}, {"host_path": "/data", "container_path": "/in"}]
    assert sent_body(fake)["config"] == {
        "description": "mine",
        "entrypoint": ["ls", "-l"],
        "resources": {"slots": 0},
        "bind_mounts": mounts,
    }


def test_command_run_sends_an_unchanged_context_once(det: Det, fake: FakeMaster, tmp_path: Path):
    (tmp_path / "a.txt").write_text("a")
    uploads: list[Request] = []

    def upload(request: Request) -> Any:
        uploads.append(request)
        return {}

    def launch(request: Request) -> Any:
        digest = request.json["contextHash"]
        fake.answers[f"HEAD /detent/contexts/{digest}"] = {}
        return {"command": COMMAND, "config": {}}

    fake.answers[f"POST {C}"] = launch
    from determined.context import pack

    fake.answers[f"PUT /detent/contexts/{pack(tmp_path).hash}"] = upload
    for _ in range(2):
        assert det("cmd", "run", "-d", "-c", str(tmp_path), "ls").code == 0
    assert len(uploads) == 1


def test_command_run_names_links_of_the_context_that_are_followed_or_left_out(
    det: Det, fake: FakeMaster, tmp_path: Path
):
    (tmp_path / ".git").mkdir()
    (tmp_path / "context").mkdir()
    (tmp_path / "shared.py").write_text("x = 1")
    (tmp_path / "context" / "link.py").symlink_to("../shared.py")
    (tmp_path / "context" / "gone.py").symlink_to("../nowhere")
    fake.answers[f"POST {C}"] = {"command": COMMAND, "config": {}}
    from determined.context import pack

    fake.answers[f"PUT /detent/contexts/{pack(tmp_path / 'context').hash}"] = {}
    done = det("cmd", "run", "-d", "-c", str(tmp_path / "context"), "ls")
    assert done.code == 0, done.err
    assert f"link followed: link.py -> {tmp_path / 'shared.py'}\nleft out: gone.py: a broken link\n" in done.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "give the program to run"),
        (("-v", "/data", "ls"), "HOST:CONTAINER"),
        (("-i", "x", "ls"), "--include needs --context"),
        (("--template", "t", "ls"), "templates are not supported yet"),
        (("--config-file", "absent.yaml", "ls"), "absent.yaml: no such file or directory"),
    ],
)
def test_command_run_refuses_invalid_flags_and_sends_no_request(
    det: Det, fake: FakeMaster, words: tuple[str, ...], text: str
):
    done = det("cmd", "run", *words)
    assert done.code not in (0, None)
    assert text in done.err
    assert fake.requests_to(f"POST {C}") == []


def test_command_run_prints_the_reason_of_the_master(det: Det, fake: FakeMaster):
    fake.answers[f"POST {C}"] = error(400, 3, 'unknown field "slot" in resources')
    done = det("cmd", "run", "ls")
    assert done.code != 0
    assert 'unknown field "slot" in resources' in done.err


def test_command_list_shows_the_users_own_commands_unless_all_is_given(det: Det, fake: FakeMaster):
    rows = json.loads(det("cmd", "list", "--json").out)
    assert [(row["id"], row["state"], row["slots"]) for row in rows] == [(ID, "RUNNING", 1), (OTHER, "RUNNING", 1)]
    assert fake.requests_to(f"GET {C}")[-1].query["users"] == ["admin"]
    assert det("command", "ls", "-a", "--csv").out.startswith("ID,Description,Owner,State,")
    assert "users" not in fake.requests_to(f"GET {C}")[-1].query


def test_a_command_is_named_by_the_beginning_of_its_id(det: Det, fake: FakeMaster):
    assert json.loads(det("cmd", "describe", "3F2B", "--json").out)[0]["config"] == {"entrypoint": ["ls"]}
    table = det("cmd", "describe", ID[:4]).out
    assert "exited with code 7" in table
    assert det("cmd", "config", "3f").out == "entrypoint:\n- ls\n"
    assert det("cmd", "logs", "3f2b").out == "a line\n"
    assert det("cmd", "kill", "3f2b").code == 0
    assert det("cmd", "set", "priority", "3f2b", "7").code == 0
    assert fake.requests_to(f"POST {C}/{ID}/set_priority")[-1].json["priority"] == 7
    absent = det("cmd", "kill", "ffff")
    assert "command 'ffff' not found" in absent.err
    fake.answers[f"GET {C}"]["commands"][1]["id"] = "3f2c0000-0000-4000-8000-000000000002"
    assert "2 commands begin with 3f2" in det("cmd", "kill", "3f2").err


def test_a_date_in_a_file_is_a_text_as_in_experiments(tmp_path: Path) -> None:
    file = tmp_path / "command.yaml"
    file.write_text("description: 2024-01-01\n")
    args = Namespace(config_file=str(file), config=[], volume=["/a:b"])
    assert configuration(args)["description"] == "2024-01-01"
    file.write_text("bind_mounts: 5\n")
    with pytest.raises(ConfigError, match="bind_mounts is not a list"):
        configuration(args)
