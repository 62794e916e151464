"""Masks the secrets of a configuration for output, as data and as YAML text, and restores masked values.

Secrets are: everything below ``data.secrets``; the keys, connection string and credential of ``checkpoint_storage``;
the password and tokens of ``environment.registry_auth``; environment variables (of tasks and of pods) whose names look
like secrets; and the password in a URL.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from determined import yaml_places
from determined.config.diagnostics import Path, render_path
from determined.config.yaml_source import read

MASK = "********"
UNREADABLE = "# This configuration is not shown: it cannot be parsed, so its secrets cannot be masked.\n"
MAX_CACHED_LENGTH = 10_000
_STORAGE_FIELDS = frozenset({"access_key", "secret_key", "connection_string", "credential"})
_REGISTRY_FIELDS = frozenset({"password", "auth", "identitytoken", "registrytoken"})
_VARIABLES = ("environment", "environment_variables")
_SECTIONS = ("data", "checkpoint_storage", "environment")
_SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:SECRETS?|TOKEN|PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|CREDENTIALS?|AUTH|APIKEY|(?:API|ACCESS|PRIVATE|"
    r"ACCOUNT|SIGNING|ENCRYPTION|SSH|AUTH|SECRET)_?KEY(?:_ID)?|KEY)$|SECRET|PASSWORD|CREDENTIAL",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
_URL_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s?#]+@")
_URL_PASSWORD_OF = re.compile(r"://[^/\s:@]*:([^/\s?#]+)@")
MIN_SECRET_LENGTH = 4
_HINT = re.compile(
    r"secrets|access_key|secret_key|connection_string|credential|registry_auth|environment_variables|pod_spec|://\S*@|\\"
)
"""A text without any of these has no secrets and is not parsed. A backslash may hide one of them."""
_ANCHOR = re.compile(r"&\S+\s+")


class StillMasked(ValueError):
    """Raised if a masked value has no known original; ``path`` names it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} is masked"


def is_secret_name(name: str) -> bool:
    """Returns True if an environment variable of this name is considered a secret."""
    return name.upper() not in _NOT_SECRET and _SECRET_NAME.search(name) is not None


def masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration with every secret replaced by ``********``; shares what has none."""
    shown = dict(config)
    for section in _SECTIONS:
        if shown.get(section):
            shown[section] = _masked_value((section,), shown[section], None)
    return shown


def without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration without the values that :func:`masked` would change."""
    shown = dict(config)
    for section in _SECTIONS:
        if isinstance(shown.get(section), dict):
            shown[section] = _without(shown[section], masked({section: shown[section]})[section])
    return shown


def secret_values(config: Mapping[str, Any]) -> set[str]:
    """Returns the texts that :func:`masked` hides, without those too short to be told from other words."""
    values: set[str] = set()
    for path, value, name in _leaves((), {key: config.get(key) for key in _SECTIONS}, None):
        shown = _masked_leaf(path, value, name)
        if shown == MASK:
            values.add(str(value))
        elif shown is not None and path[:2] == _VARIABLES and shown.endswith(f"={MASK}"):
            values.add(str(value).partition("=")[2])
        elif shown is not None:
            values.update(each[1] for each in _URL_PASSWORD_OF.finditer(str(value)))
    return {value for value in values if len(value) >= MIN_SECRET_LENGTH}


def without_url_passwords(text: str) -> str:
    """Returns the text with the password of each URL replaced by ``********``.

    >>> without_url_passwords("https://ann:secret@example.org/a")
    'https://ann:********@example.org/a'
    >>> without_url_passwords("https://ann:p@ss@example.org/a@b")
    'https://ann:********@example.org/a@b'
    """
    return _URL_PASSWORD.sub(rf"\g<1>{MASK}@", text)


def masked_text(text: str) -> str:
    """Returns the YAML text with every secret replaced by ``********``; everything else stays as it was written.

    Comments stay too. A text that cannot be masked in place is written anew from what it says.
    """
    if not _HINT.search(text):
        return text
    return (_cached_text if len(text) <= MAX_CACHED_LENGTH else _cached_long_text)(text)


def unmasked_text(text: str, config: Mapping[str, Any], original: str) -> str:
    """Returns ``text`` with the values of an earlier configuration in place of those that are masked.

    ``config`` and ``original`` are that configuration as data and as text. Raises StillMasked where it has no such
    value.
    """
    if MASK not in text:
        return text
    known = [*_leaves((), read(original).data, None), *_leaves((), dict(config), None)]
    by_path: dict[tuple[Path, str], Any] = {}
    variables: dict[str, Any] = {}
    for path, value, name in known:
        shown = _masked_leaf(path, value, name)
        if shown is not None:
            by_path.setdefault((path, shown), value)
            if path[:2] == _VARIABLES:
                variables.setdefault(shown, value)

    def real(path: Path, value: object, name: str | None) -> Any:  # noqa: ANN401  # a value of a YAML document
        if not isinstance(value, str) or MASK not in value or _masked_leaf(path, value, name, again=True) is None:
            return None
        path_value = by_path.get((path, value))
        if path_value is None and path[:2] == _VARIABLES:
            path_value = variables.get(value)
        if path_value is None:
            raise StillMasked(render_path(path))
        return path_value

    return _replaced(text, real)


def masked_paths(text: str) -> list[str]:
    """Returns the paths of secrets whose value in ``text`` is the mask."""
    if MASK not in text:
        return []
    return [
        render_path(path)
        for path, value, name in _leaves((), read(text).data, None)
        if isinstance(value, str) and MASK in value and _masked_leaf(path, value, name, again=True) is not None
    ]


def _masked_text(text: str) -> str:
    data = read(text).data
    if not data:
        return UNREADABLE
    if masked(data) == data:
        return text
    try:
        shown = _replaced(text, _masked_leaf)
        after = read(shown).data
        if after and masked(after) == after:
            return shown
    except yaml.YAMLError:
        pass
    return yaml.safe_dump(masked(data), sort_keys=False, allow_unicode=True)


_cached_text = functools.lru_cache(maxsize=512)(_masked_text)
_cached_long_text = functools.lru_cache(maxsize=8)(_masked_text)


def _masked_leaf(path: Path, value: object, name: str | None, *, again: bool = False) -> str | None:
    """Returns what is shown in place of a secret, or None where the value is none.

    ``name`` is the field ``name`` beside the value, as pods have it for their variables. ``again``: a value that is
    masked already counts as a secret.
    """
    if value is None or value == "" or (value == MASK and not again):
        return None
    shown: str | None = None
    if _is_secret_field(path):
        shown = MASK
    elif path[:2] == _VARIABLES and isinstance(value, str):
        variable, is_set, content = value.partition("=")
        if is_set and content and is_secret_name(variable):
            shown = f"{variable}={MASK}"
    elif path[:2] == ("environment", "pod_spec") and path[-1] == "value" and name is not None and is_secret_name(name):
        shown = MASK
    if shown is None and isinstance(value, str) and path[0] in _SECTIONS and "@" in value:
        shown = without_url_passwords(value)
    return None if shown is None or (shown == value and not again) else shown


def _is_secret_field(path: Path) -> bool:
    if path[0] == "checkpoint_storage":
        return path[-1] in _STORAGE_FIELDS
    if path[:2] == ("environment", "registry_auth"):
        return path[-1] in _REGISTRY_FIELDS
    return path[:2] == ("data", "secrets")


def _masked_value(path: Path, value: object, name: str | None) -> object:
    if isinstance(value, dict):
        beside = value.get("name")
        return {
            key: _masked_value((*path, key), each, beside if isinstance(beside, str) else None)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_masked_value((*path, index), each, None) for index, each in enumerate(value)]
    shown = _masked_leaf(path, value, name)
    return value if shown is None else shown


def _leaves(path: Path, value: object, name: str | None) -> Iterator[tuple[Path, Any, str | None]]:
    if isinstance(value, dict):
        beside = value.get("name")
        for key, each in value.items():
            yield from _leaves((*path, key), each, beside if isinstance(beside, str) else None)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves((*path, index), each, None)
    elif path:
        yield path, value, name


def _without(value: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, each in value.items():
        if isinstance(each, dict):
            kept[key] = _without(each, shown[key])
        elif each == shown[key]:
            kept[key] = each
    return kept


Change = Callable[[Path, Any, str | None], Any]
"""Gets path, value and the ``name`` beside it of a scalar; returns its new value, or None where it stays."""


class _Replacement:
    """Collects the changes of one text by the places of its scalars. An alias is changed where its anchor is."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self.spans: dict[tuple[int, int], Any] = {}

    def visit(self, node: yaml.Node, path: Path, name: str | None) -> None:
        if isinstance(node, yaml.MappingNode):
            beside = next(
                (v.value for k, v in node.value if k.value == "name" and isinstance(v, yaml.ScalarNode)), None
            )
            for key, each in node.value:
                is_merge = key.value == "<<" and key.tag == "tag:yaml.org,2002:merge"
                parts = each.value if is_merge and isinstance(each, yaml.SequenceNode) else [each]
                for part in parts:
                    self.visit(part, path if is_merge else (*path, key.value), beside)
        elif isinstance(node, yaml.SequenceNode):
            for index, each in enumerate(node.value):
                self.visit(each, (*path, index), None)
        elif isinstance(node, yaml.ScalarNode) and path:
            is_null = node.tag == "tag:yaml.org,2002:null"
            found = self._change(path, None if is_null else node.value, name)
            if found is not None:
                self.spans[yaml_places.span(node)] = found


def _replaced(text: str, change: Change) -> str:
    replacement = _Replacement(change)
    root = yaml_places.compose(text)
    if root is not None:
        replacement.visit(root, (), None)
    parts: list[str] = []
    done = 0
    for (start, end), value in sorted(replacement.spans.items()):
        written = text[start:end]
        anchor = _ANCHOR.match(written)
        tail = written[len(written.rstrip()) :]  # the last line break of a block
        parts += [text[done:start], anchor.group() if anchor else "", json.dumps(value, ensure_ascii=False), tail]
        done = end
    return "".join([*parts, text[done:]])
