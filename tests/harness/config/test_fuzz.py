"""Random configurations: the check raises for no input, and an accepted configuration is usable."""

import json
from pathlib import Path

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from determined.config import check
from determined.config.experiment import ExperimentConfig
from determined.config.overrides import override
from determined.errors import ConfigError

CASES = Path(__file__).parent / "cases"
MASTER = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"}}
FIELDS = sorted(
    {
        *ExperimentConfig.model_fields,
        "type",
        "minval",
        "maxval",
        "vals",
        "metric",
        "batches",
        "host_path",
        "count",
        "val",
    }
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["single", "random", "grid", "int", "double", "log", "s3", "/a", "a:B", "4g", "best"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
documents = st.dictionaries(st.sampled_from(sorted(ExperimentConfig.model_fields)), values, max_size=6)
BASE = {"entrypoint": "a:B", "searcher": {"name": "single", "metric": "loss"}}

relaxed = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(st.text(max_size=200))
def test_any_text_gives_a_configuration_or_diagnostics(text: str) -> None:
    checked = check(text)
    assert checked.ok or checked.diagnostics
    checked.render()


@relaxed
@example({"checkpoint_storage": {"type": []}})
@given(documents)
def test_any_document_gives_a_configuration_or_an_error(document: dict[str, object]) -> None:
    checked = check(yaml.dump({**BASE, **document}, allow_unicode=True), defaults=[MASTER])
    assert checked.ok == (not any(diagnostic.severity == "error" for diagnostic in checked.diagnostics))
    if checked.config is not None:
        json.dumps(checked.config.to_json(), allow_nan=False)


@relaxed
@given(documents, documents)
def test_diagnostics_of_any_defaults_can_be_rendered(document: dict[str, object], defaults: dict[str, object]) -> None:
    checked = check(yaml.dump({**BASE, **document}), defaults=[defaults, MASTER])
    checked.render()


@relaxed
@given(st.sampled_from(sorted(CASES.glob("*.yaml"))), st.data())
def test_diagnostics_of_a_garbled_file_can_be_rendered(path: Path, data: st.DataObject) -> None:
    text = path.read_text()
    position = data.draw(st.integers(0, len(text)))
    check(text[:position] + data.draw(st.text(max_size=3)) + text[position + data.draw(st.integers(0, 5)) :]).render()


@relaxed
@given(st.text(max_size=40))
def test_any_override_is_applied_or_refused(change: str) -> None:
    try:
        override("resources: {slots_per_trial: 1}", [change])
    except ConfigError:
        pass


def test_aliases_that_expand_too_far_are_an_error() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "E106" in {diagnostic.code for diagnostic in check("\n".join(lines)).diagnostics}
