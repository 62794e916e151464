"""Secrets of a configuration are masked as data and as text, and masked values come back from the configuration of before."""

import json

import pytest
import yaml

from determined.config.masking import (
    MASK,
    StillMasked,
    is_secret_name,
    masked,
    masked_paths,
    masked_text,
    unmasked_text,
    without_secrets,
)
from determined.config.yaml_source import read

TEXT = """\
name: ünïcode 🐢  # a comment stays
entrypoint: python3 train.py
data:
  url: /data
  secrets: {db: "hunter2-a", nested: {deep: hunter2-b}, number: 4711471147114711}
checkpoint_storage:
  type: s3
  bucket: b
  access_key: &key hunter2-c
  secret_key: *key
  endpoint_url: https://me:hunter2-d@store.example
environment:
  registry_auth: {username: me, password: 'hunter2-e', identitytoken: hunter2-f}
  environment_variables:
    - WANDB_API_KEY=hunter2-g
    - "LEVEL=debug"
    - DB_URL=postgres://me:hunter2-h@db/x
    - |
      MY_PASSWORD=hunter2-i
      hunter2-j
  pod_spec:
    spec:
      containers:
        - name: c
          env: [{name: HF_TOKEN, value: hunter2-k}, {name: LANG, value: C}]
"""


def test_every_secret_is_masked_and_the_rest_stays():
    shown = masked(read(TEXT).data)
    assert "hunter2" not in json.dumps(shown)
    assert "4711" not in json.dumps(shown)
    assert shown["name"] == "ünïcode 🐢"
    assert shown["data"]["url"] == "/data"
    assert shown["data"]["secrets"] == {"db": MASK, "nested": {"deep": MASK}, "number": MASK}
    storage = {
        "bucket": "b",
        "access_key": MASK,
        "secret_key": MASK,
        "endpoint_url": f"https://me:{MASK}@store.example",
    }
    assert shown["checkpoint_storage"] == {"type": "s3", **storage}
    assert shown["environment"]["registry_auth"] == {"username": "me", "password": MASK, "identitytoken": MASK}
    assert shown["environment"]["environment_variables"] == [
        f"WANDB_API_KEY={MASK}",
        "LEVEL=debug",
        f"DB_URL=postgres://me:{MASK}@db/x",
        f"MY_PASSWORD={MASK}",
    ]
    (container,) = shown["environment"]["pod_spec"]["spec"]["containers"]
    assert container["env"] == [{"name": "HF_TOKEN", "value": MASK}, {"name": "LANG", "value": "C"}]


def test_the_text_says_the_same_as_the_data_and_keeps_its_lines():
    shown = masked_text(TEXT)
    assert "hunter2" not in shown
    assert read(shown).data == masked(read(TEXT).data)
    assert shown.splitlines()[:2] == TEXT.splitlines()[:2]
    assert '    - "LEVEL=debug"' in shown.splitlines()


def test_what_has_no_secret_is_the_same():
    text = "name: x # my key\nenvironment: {environment_variables: [A=b]}\n"
    assert masked_text(text) is text
    assert masked(read(text).data) == read(text).data


def test_a_key_that_is_written_with_an_escape_is_masked():
    assert "hunter2" not in masked_text('data: {"\\x73ecrets": {a: hunter2}}')


def test_a_text_that_cannot_be_read_is_not_shown():
    assert "hunter2" not in masked_text("data: {secrets: {a: hunter2}")


def test_secrets_that_come_by_a_merge_key_are_masked():
    text = "x: &base\n  secret_key: hunter2\ncheckpoint_storage:\n  <<: *base\n  type: s3\n"
    assert "hunter2" not in masked_text(text)
    assert read(masked_text(text)).data["checkpoint_storage"]["secret_key"] == MASK


def test_per_device_variables_are_masked():
    config = {"environment": {"environment_variables": {"cpu": ["A_TOKEN=hunter2"], "cuda": ["A_TOKEN=hunter2"]}}}
    assert "hunter2" not in json.dumps(masked(config))


def test_nothing_of_a_secret_is_left_for_the_index():
    left = without_secrets(read(TEXT).data)
    assert MASK not in json.dumps(left)
    assert "hunter2" not in json.dumps(left)
    assert left["checkpoint_storage"] == {"type": "s3", "bucket": "b"}
    assert left["data"] == {"url": "/data", "secrets": {"nested": {}}}


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "HF_TOKEN",
        "PGPASSWORD",
        "db_password",
        "APIKEY",
        "NGC_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "BASIC_AUTH",
        "MYSQL_PWD",
    ],
)
def test_names_of_secrets_are_recognized(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["PWD", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "AUTHOR", "PATH", "MONKEY", "KEYBOARD", "COMPASS"]
)
def test_names_of_no_secrets_are_left_alone(name: str):
    assert not is_secret_name(name)


def test_masked_values_come_back_from_the_configuration_of_before():
    sent = masked_text(TEXT).replace("LEVEL=debug", "LEVEL=info")
    back = unmasked_text(sent, read(TEXT).data, TEXT)
    expected = read(TEXT).data
    expected["environment"]["environment_variables"][1] = "LEVEL=info"
    assert read(back).data == expected
    assert masked_paths(sent)
    assert masked_paths(back) == []


def test_variables_come_back_wherever_they_are_now_and_from_the_effective_configuration():
    config = {"environment": {"environment_variables": {"cpu": ["A=b", "A_TOKEN=hunter2"], "cuda": []}}}
    sent = f"environment:\n  environment_variables: ['A_TOKEN={MASK}']\n"
    assert yaml.safe_load(unmasked_text(sent, config, "name: x"))["environment"]["environment_variables"] == [
        "A_TOKEN=hunter2"
    ]


def test_a_masked_value_without_an_original_is_refused():
    with pytest.raises(StillMasked, match=r"data\.secrets\.other"):
        unmasked_text(f"data: {{secrets: {{other: '{MASK}'}}}}", read(TEXT).data, TEXT)


def test_a_mask_that_is_no_secret_stays():
    text = f"name: '{MASK}'\n"
    assert masked_paths(text) == []
    assert unmasked_text(text, {}, "") == text
