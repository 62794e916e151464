"""Names of images: the repository and the tag."""

_IMPLIED = ("docker.io/library/", "docker.io/")


def repository_and_tag(name: str) -> tuple[str, str | None]:
    """Splits an image's name; without a tag the engine would pull every tag of the repository.

    >>> repository_and_tag("localhost:5000/lab/train")
    ('localhost:5000/lab/train', 'latest')
    >>> repository_and_tag("lab/train@sha256:00")
    ('lab/train@sha256:00', None)
    """
    if "@" in name:
        return name, None
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        return name, "latest"
    return repository, tag


def full_name(name: str) -> str:
    """Returns the name as the engine lists it: with a tag, without a registry that is implied.

    >>> full_name("docker.io/library/python"), full_name("lab/train:1")
    ('python:latest', 'lab/train:1')
    """
    repository, tag = repository_and_tag(name)
    for prefix in _IMPLIED:
        repository = repository.removeprefix(prefix)
    return repository if tag is None else f"{repository}:{tag}"
