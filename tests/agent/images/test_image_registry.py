"""Images from a real registry: pulls with progress, credentials and refusals."""

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import outcome
from tests.support.container_engine import ENGINE_URL, has_image, make_image, need_engine, remove_image, tag_image
from tests.support.image_registry import PASSWORD, USER, image_registry, push

from determined.link.messages import ContainerExit
from determined_agent.drivers.engine import Engine
from determined_agent.images.image_cleanup import ImageCleanup
from determined_agent.images.pulled_images import FILE, PulledImages
from determined_agent.settings import Settings

pytestmark = [pytest.mark.xdist_group("container-engine"), pytest.mark.budget(10, "pulls images")]

SMALL = "detent-test:small"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_engine()
    with image_registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="module")
def closed_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a registry that requires a password."""
    need_engine()
    with image_registry(tmp_path_factory.mktemp("closed"), has_password=True) as address:
        make_image(SMALL, "RUN echo closed >/which")
        push(SMALL, f"{address}/lab/train:1", has_password=True)
        yield address


def docker(*arguments: str, check: bool = True) -> None:
    subprocess.run(["docker", *arguments], check=check, capture_output=True)


async def run_image(
    tmp_path: Path, image: str, script: str = "cat /which", **spec: Any
) -> tuple[ContainerExit, list[str], list[str]]:
    return await outcome(tmp_path, script, images={"cpu": image}, settings={"container_runtime": "docker"}, **spec)


async def test_a_missing_image_is_pulled_with_notes_in_the_log(tmp_path: Path, registry: str) -> None:
    name = f"{registry}/lab/train:1"
    make_image(SMALL, "RUN echo first >/which")
    push(SMALL, name)
    exit_, lines, notes = await run_image(tmp_path, name)
    assert (exit_.code, lines) == (0, ["first"]), exit_
    assert notes[0] == f"pulling {name}"
    assert notes[1].startswith(f"pulled {name} in ")


async def test_a_local_image_is_pulled_again_only_with_force_pull_image(tmp_path: Path, registry: str) -> None:
    name = f"{registry}/lab/again"  # without a tag: the latest
    make_image(SMALL, "RUN echo old >/which")
    push(SMALL, name)
    assert (await run_image(tmp_path / "a", name))[1] == ["old"]
    make_image(SMALL, "RUN echo new >/which")
    tag_image(name, "detent-test:kept")
    push(SMALL, name)
    tag_image("detent-test:kept", name)
    exit_, lines, notes = await run_image(tmp_path / "b", name)
    assert (lines, [note for note in notes if "pull" in note]) == (["old"], []), exit_
    assert (await run_image(tmp_path / "c", name, force_pull_image=True))[1] == ["new"]


async def test_a_pull_without_credentials_from_a_closed_registry_is_refused_without_retry(
    tmp_path: Path, closed_registry: str
) -> None:
    name = f"{closed_registry}/lab/train:1"
    exit_, _, notes = await run_image(tmp_path, name)
    assert exit_.kind == "failed_to_start"
    assert exit_.message.startswith(f"cannot pull image {name}: ")
    assert "no basic auth credentials" in exit_.message
    assert [note for note in notes if "trying again" in note] == [], "a refusal does not change by asking again"


async def test_registry_auth_of_the_configuration_permits_the_pull(tmp_path: Path, closed_registry: str) -> None:
    remove_image(f"{closed_registry}/lab/train:1")
    auth = {"username": USER, "password": PASSWORD}
    exit_, lines, notes = await run_image(tmp_path, f"{closed_registry}/lab/train:1", registry_auth=auth)
    assert (exit_.code, lines) == (0, ["closed"]), exit_
    assert PASSWORD not in "".join(notes)


async def test_the_error_of_wrong_credentials_does_not_contain_the_password(
    tmp_path: Path, closed_registry: str
) -> None:
    remove_image(f"{closed_registry}/lab/train:1")
    auth = {"username": USER, "password": "not-this-one"}
    exit_, _, _ = await run_image(tmp_path, f"{closed_registry}/lab/train:1", registry_auth=auth)
    assert exit_.kind == "failed_to_start"
    assert "not-this-one" not in exit_.message


async def test_the_docker_login_of_the_machine_permits_the_pull(
    tmp_path: Path, closed_registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator ran ``docker login`` on the machine of the agent."""
    remove_image(f"{closed_registry}/lab/train:1")
    secret = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {closed_registry: {"auth": secret}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    exit_, lines, _ = await run_image(tmp_path, f"{closed_registry}/lab/train:1")
    assert (exit_.code, lines) == (0, ["closed"]), exit_


async def test_a_credential_helper_of_the_machine_permits_the_pull(
    tmp_path: Path, closed_registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_image(f"{closed_registry}/lab/train:1")
    programs = tmp_path / "bin"
    programs.mkdir()
    helper = programs / "docker-credential-lab"
    answer = json.dumps({"Username": USER, "Secret": PASSWORD, "ServerURL": closed_registry})
    helper.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{answer}'\n")
    helper.chmod(0o755)
    (tmp_path / "config.json").write_text(json.dumps({"credHelpers": {closed_registry: "lab"}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    exit_, lines, _ = await run_image(tmp_path, f"{closed_registry}/lab/train:1")
    assert (exit_.code, lines) == (0, ["closed"]), exit_


async def test_an_agent_removes_the_images_that_it_pulled_when_they_are_unused(tmp_path: Path, registry: str) -> None:
    """On the real engine. An image that was already there and an image that a container uses stay."""
    own_image, foreign_image = f"{registry}/lab/mine:1", f"{registry}/lab/theirs:1"
    for name in (own_image, foreign_image):
        make_image(SMALL, f"RUN echo {name} >/which")
        push(SMALL, name)
    docker("pull", "--quiet", foreign_image)
    for name in (own_image, foreign_image):
        assert (await run_image(tmp_path, name))[1] == [name]
    record = tmp_path / "data" / FILE
    (pulled,) = json.loads(record.read_text())
    assert pulled["names"] == [own_image]
    record.write_text(json.dumps([{**pulled, "used": 0}]))
    remove_image(SMALL)
    engine = Engine(ENGINE_URL)
    settings = Settings(data=tmp_path / "data", unused_image_seconds=600)
    cleanup = ImageCleanup(engine, PulledImages(tmp_path / "data"), settings, ())
    try:
        docker("create", "--name", "detent-test-user", own_image)
        await cleanup.tick()
        assert has_image(own_image), "a container uses it"
        docker("rm", "detent-test-user")
        record.write_text(json.dumps([{**pulled, "used": 0}]))
        await ImageCleanup(engine, PulledImages(tmp_path / "data"), settings, ()).tick()
        assert not has_image(own_image)
        assert has_image(foreign_image), "the agent did not pull it"
    finally:
        engine.close()
        docker("rm", "--force", "detent-test-user", check=False)
        for name in (own_image, foreign_image):
            remove_image(name)
