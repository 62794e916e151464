"""The environment of a task in a real container that a real agent starts."""

import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import outcome
from tests.support.container_engine import BASE_IMAGE, events_of_engine, make_image, need_engine
from tests.support.fake_link_master import FakeLinkMaster

from determined.link.messages import ContainerExit

pytestmark = pytest.mark.xdist_group("container-engine")

Outcome = tuple[ContainerExit, list[str], list[str]]


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    need_engine()


async def run_in_container(tmp_path: Path, script: str, **spec: Any) -> Outcome:
    """Runs a shell script in a container. Returns its exit, its lines and the agent's lines."""
    settings = {"container_runtime": "docker", "default_images": {"cpu": BASE_IMAGE}} | spec.pop("settings", {})
    return await outcome(tmp_path, script, settings=settings, **spec)


async def lines_of(tmp_path: Path, script: str, **spec: Any) -> list[str]:
    """Returns the lines that a script wrote. Both streams are joined because two have no common order."""
    exit_, lines, notes = await run_in_container(tmp_path, f"exec 2>&1; {script}", **spec)
    assert exit_.code == 0, (exit_, lines, notes)
    return lines


async def test_a_container_has_the_variables_of_its_image_its_user_and_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    show = "python3 -c 'import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))'"
    lines = await lines_of(
        tmp_path,
        show,
        user_environment=["A=for any slot"],
        device_environment={"cpu": ["A=for a cpu", "DET_MASTER=evil"], "cuda": ["A=for a gpu"]},
        settings={"base_environment": {"HTTPS_PROXY": "http://proxy:3128", "HOME": "/home/agent"}},
    )
    environment, workdir = json.loads(lines[-1])
    assert environment["SSL_CERT_FILE"] == "/etc/ssl/certs/ca-certificates.crt", "of the image"
    assert environment["A"] == "for a cpu"
    assert environment["HTTPS_PROXY"] == "http://proxy:3128"
    assert environment["HOME"] == "/root"
    assert environment["DET_MASTER"].startswith("http://127.0.0.1:")
    assert workdir == environment["DET_WORKDIR"] == "/run/determined/workdir"
    assert environment["PYTHONPATH"] == "/opt/detent/harness"
    assert "secret" not in environment.values()


async def test_the_events_of_the_engine_hold_no_session_token(tmp_path: Path) -> None:
    script = "hostname; sleep 0.1"
    await lines_of(tmp_path, script, environment={"DET_SESSION_TOKEN": "secret-of-the-task"})
    events = events_of_engine()
    assert "detent.agent" in events
    assert "secret-of-the-task" not in events


async def test_the_determined_library_is_mounted_read_only(tmp_path: Path) -> None:
    script = "python3 -c 'import determined; print(determined.__file__)'; touch /opt/detent/harness/x || echo refused"
    file, refusal = (await lines_of(tmp_path, script))[:1], (await lines_of(tmp_path / "b", script))[-1]
    assert file == ["/opt/detent/harness/determined/__init__.py"]
    assert refusal == "refused"


async def test_bind_mounts_are_writable_unless_read_only_is_set(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("here")
    mounts = [
        {"host_path": str(tmp_path / "data"), "container_path": "/data", "read_only": True, "propagation": "private"},
        {"host_path": str(tmp_path / "data"), "container_path": "relative"},
    ]
    script = "cat /data/file; echo; touch /data/x || echo refused; touch relative/made"
    settings = {"allowed_host_paths": [tmp_path / "data"]}
    assert await lines_of(tmp_path, script, bind_mounts=mounts, settings=settings) == [
        "here",
        "touch: cannot touch '/data/x': Read-only file system",
        "refused",
    ]
    assert (tmp_path / "data" / "made").exists()


@pytest.mark.parametrize(
    ("mount", "text"),
    [
        ({"host_path": "relative", "container_path": "/x"}, "is not an absolute path"),
        ({"host_path": "NOWHERE", "container_path": "/x"}, "does not exist on this machine"),
        ({"host_path": "/nowhere/at/all", "container_path": "/x"}, "does not allow /nowhere/at/all"),
        ({"host_path": "/etc", "container_path": "/x"}, "the administrator of this agent does not allow /etc"),
        ({"host_path": "LINK", "container_path": "/x"}, "the administrator of this agent does not allow /etc"),
        ({"host_path": "ALLOWED", "container_path": "/x", "propagation": "odd"}, "propagation odd is none of"),
    ],
)
async def test_a_bind_mount_that_is_invalid_or_not_allowed_is_refused_with_the_reason(
    tmp_path: Path, mount: dict[str, Any], text: str
) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "link").symlink_to("/etc")
    places = {"LINK": str(allowed / "link"), "ALLOWED": str(allowed), "NOWHERE": str(allowed / "nowhere")}
    mount["host_path"] = places.get(mount["host_path"], mount["host_path"])
    exit_, _, _ = await run_in_container(
        tmp_path, "true", bind_mounts=[mount], settings={"allowed_bind_mounts": [allowed]}
    )
    assert exit_.kind == "failed_to_start"
    assert text in exit_.message


async def test_a_container_has_the_configured_limits_devices_and_capabilities(tmp_path: Path) -> None:
    script = """
        echo $(df --output=size -B1 /dev/shm | tail -1)
        test -c /dev/of-the-user && echo device
        cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max 2>/dev/null ||
            cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max
        chown 1:1 /tmp 2>/dev/null || echo no chown
        mount -t tmpfs none /mnt && echo mounted
    """
    assert await lines_of(
        tmp_path,
        script,
        shm_bytes=64 << 20,
        devices=[{"host_path": "/dev/null", "container_path": "/dev/of-the-user", "mode": "rw"}],
        add_capabilities=["SYS_ADMIN"],
        drop_capabilities=["CHOWN"],
        settings={
            "memory_bytes": 512 << 20,
            "pids": 50,
            "cpus": 0.5,
            "allowed_devices": ["/dev/null"],
            "allowed_capabilities": ["CAP_SYS_ADMIN"],
        },
    ) == [str(64 << 20), "device", str(512 << 20), "50", "no chown", "mounted"]


async def test_a_shm_size_of_zero_means_the_setting_of_the_agent(tmp_path: Path) -> None:
    """The engine itself reads 0 as 64 MiB, with which loader workers end with a bus error."""
    script = "df --output=size -B1 /dev/shm | tail -1"
    (size,) = await lines_of(tmp_path, script, shm_bytes=0, settings={"shm_bytes": 96 << 20})
    assert int(size) == 96 << 20


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"add_capabilities": ["FLYING"]}, "FLYING"),
        ({"drop_capabilities": ["FLYING"]}, "FLYING"),
        ({"devices": [{"host_path": "/dev/nothing", "container_path": "/dev/x"}]}, "/dev/nothing does not exist"),
    ],
)
async def test_an_unknown_capability_or_device_fails_the_start_and_is_named(
    tmp_path: Path, wanted: dict[str, Any], text: str
) -> None:
    settings = {"allowed_devices": ["/dev/nothing"], "allowed_capabilities": ["FLYING"]}
    exit_, _, _ = await run_in_container(tmp_path, "true", settings=settings, **wanted)
    assert exit_.kind == "failed_to_start"
    assert text in exit_.message


async def test_a_task_that_exceeds_its_memory_limit_is_reported_as_out_of_memory(tmp_path: Path) -> None:
    exit_, _, _ = await run_in_container(
        tmp_path, "python3 -c 'x = b\"x\" * (200 << 20)'", settings={"memory_bytes": 64 << 20}
    )
    assert exit_.kind == "exited"
    assert "out of memory" in exit_.message


async def test_a_task_that_forks_too_often_fails_at_its_process_limit(tmp_path: Path) -> None:
    script = "for i in $(seq 100); do sleep 60 & done; echo all"
    exit_, lines, _ = await run_in_container(tmp_path, script, settings={"pids": 30})
    assert exit_.kind == "exited"
    assert "all" not in lines
    assert any("fork" in line.lower() for line in lines)


async def test_a_container_that_fills_dev_shm_does_not_fill_the_machines(tmp_path: Path) -> None:
    script = "head -c 10000000 /dev/zero > /dev/shm/file || echo full"
    lines = await lines_of(tmp_path, script, shm_bytes=1 << 20)
    assert lines[-1] == "full"
    assert not Path("/dev/shm/file").exists()


async def test_the_log_names_the_image_that_replaces_the_requested_one(tmp_path: Path) -> None:
    exit_, _, notes = await run_in_container(
        tmp_path,
        "true",
        images={"cpu": "determinedai/environments:py-3.10-pytorch-2.0-cpu"},
    )
    assert exit_.code == 0
    assert f"image: {BASE_IMAGE} in place of determinedai/environments:py-3.10-pytorch-2.0-cpu" in notes[0]
    assert any(f"with image {BASE_IMAGE}" in note for note in notes)


async def test_an_alias_of_the_agent_replaces_an_image(tmp_path: Path) -> None:
    exit_, _, notes = await run_in_container(
        tmp_path, "true", images={"cpu": "lab/old-3"}, settings={"image_aliases": {"lab/old-*": BASE_IMAGE}}
    )
    assert exit_.code == 0
    assert any("in place of lab/old-3" in note for note in notes)


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ("localhost:1/nothing:there", "cannot pull image localhost:1/nothing:there"),
        ("Not A Name", "Not A Name"),
        ("venv:/opt/venv", "is a Python environment of a machine"),
    ],
)
async def test_an_image_that_cannot_be_pulled_is_named(tmp_path: Path, image: str, text: str) -> None:
    exit_, _, _ = await run_in_container(tmp_path, "true", images={"cpu": image})
    assert exit_.kind == "failed_to_start"
    assert text in exit_.message


async def test_an_image_without_python_is_refused(tmp_path: Path) -> None:
    make_image("detent-test:no-python", "RUN rm -f /usr/bin/python3*")
    exit_, _, _ = await run_in_container(tmp_path, "true", images={"cpu": "detent-test:no-python"})
    assert exit_.kind == "failed_to_start"
    assert "image detent-test:no-python has no python3; a task needs Python 3.10 or newer" in exit_.message


async def test_an_image_with_an_old_python_is_refused(tmp_path: Path) -> None:
    answer = json.dumps({"official": None, "version": [3, 8], "bash": "/bin/bash", "torch": None, "uncompiled": None})
    stub = f"RUN printf '#!/bin/sh\\necho %s\\n' '{json.dumps(answer)}' >/usr/local/bin/python3 && chmod +x /usr/local/bin/python3"
    make_image("detent-test:old-python", stub)
    exit_, _, _ = await run_in_container(tmp_path, "true", images={"cpu": "detent-test:old-python"})
    assert exit_.kind == "failed_to_start"
    assert exit_.message == "image detent-test:old-python has Python 3.8; tasks need 3.10 or newer"


async def test_an_image_without_byte_code_is_noted_in_the_log_and_the_report(tmp_path: Path) -> None:
    package = "/usr/lib/python3/dist-packages/jax"
    make_image("detent-test:uncompiled", f"RUN mkdir {package} && touch {package}/__init__.py")
    make_image(
        "detent-test:compiled",
        f"RUN mkdir {package} && touch {package}/__init__.py && python3 -m compileall -q {package}",
    )
    master = FakeLinkMaster()
    spec = {"master": master, "images": {"cpu": "detent-test:uncompiled"}}
    _, _, notes = await run_in_container(tmp_path / "a", "true", **spec)
    (note,) = [line for line in notes if "byte code" in line]
    assert {container.start_note for report in master.reports for container in report.containers} == {"", note}
    assert note.startswith("image detent-test:uncompiled holds no byte code of jax: each start compiles the modules")
    assert "RUN python3 -m compileall" in note
    _, _, notes = await run_in_container(tmp_path / "b", "true", images={"cpu": "detent-test:compiled"})
    assert not [line for line in notes if "byte code" in line]


# The docker package leaves the socket of a refused connection to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_an_unreachable_engine_is_reported_as_a_system_failure(tmp_path: Path) -> None:
    exit_, _, _ = await run_in_container(tmp_path, "true", settings={"engine_url": f"unix://{tmp_path}/no.sock"})
    assert exit_.kind == "system"
    assert "the container engine at unix://" in exit_.message
    gc.collect()


async def test_a_container_uses_the_hosts_network_if_its_master_is_local(tmp_path: Path) -> None:
    assert (await lines_of(tmp_path, "hostname"))[0] == os.uname().nodename
