"""Masking of secrets in a configuration, as data and as text, and restoring them from the previous configuration."""

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


def test_masked_replaces_every_secret_and_nothing_else():
    masked_config = masked(read(TEXT).data)
    assert "hunter2" not in json.dumps(masked_config)
    assert "4711" not in json.dumps(masked_config)
    assert masked_config["name"] == "ünïcode 🐢"
    assert masked_config["data"]["url"] == "/data"
    assert masked_config["data"]["secrets"] == {"db": MASK, "nested": {"deep": MASK}, "number": MASK}
    storage = {
        "bucket": "b",
        "access_key": MASK,
        "secret_key": MASK,
        "endpoint_url": f"https://me:{MASK}@store.example",
    }
    assert masked_config["checkpoint_storage"] == {"type": "s3", **storage}
    assert masked_config["environment"]["registry_auth"] == {"username": "me", "password": MASK, "identitytoken": MASK}
    assert masked_config["environment"]["environment_variables"] == [
        f"WANDB_API_KEY={MASK}",
        "LEVEL=debug",
        f"DB_URL=postgres://me:{MASK}@db/x",
        f"MY_PASSWORD={MASK}",
    ]
    (container,) = masked_config["environment"]["pod_spec"]["spec"]["containers"]
    assert container["env"] == [{"name": "HF_TOKEN", "value": MASK}, {"name": "LANG", "value": "C"}]


def test_the_masked_text_equals_the_masked_data_and_keeps_its_lines():
    text = masked_text(TEXT)
    assert "hunter2" not in text
    assert read(text).data == masked(read(TEXT).data)
    assert text.splitlines()[:2] == TEXT.splitlines()[:2]
    assert '    - "LEVEL=debug"' in text.splitlines()


def test_a_configuration_without_secrets_is_unchanged():
    text = "name: x # my key\nenvironment: {environment_variables: [A=b]}\n"
    assert masked_text(text) is text
    assert masked(read(text).data) == read(text).data


def test_a_key_that_is_written_with_an_escape_is_masked():
    assert "hunter2" not in masked_text('data: {"\\x73ecrets": {a: hunter2}}')


def test_a_text_that_is_no_yaml_is_masked_completely():
    assert "hunter2" not in masked_text("data: {secrets: {a: hunter2}")


def test_secrets_that_come_by_a_merge_key_are_masked():
    text = "x: &base\n  secret_key: hunter2\ncheckpoint_storage:\n  <<: *base\n  type: s3\n"
    assert "hunter2" not in masked_text(text)
    assert read(masked_text(text)).data["checkpoint_storage"]["secret_key"] == MASK


def test_per_device_variables_are_masked():
    config = {"environment": {"environment_variables": {"cpu": ["A_TOKEN=hunter2"], "cuda": ["A_TOKEN=hunter2"]}}}
    assert "hunter2" not in json.dumps(masked(config))


def test_without_secrets_removes_secrets_and_masks():
    rest = without_secrets(read(TEXT).data)
    assert MASK not in json.dumps(rest)
    assert "hunter2" not in json.dumps(rest)
    assert rest["checkpoint_storage"] == {"type": "s3", "bucket": "b"}
    assert rest["data"] == {"url": "/data", "secrets": {"nested": {}}}


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
def test_is_secret_name_recognizes_names_of_secrets(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["PWD", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "AUTHOR", "PATH", "MONKEY", "KEYBOARD", "COMPASS"]
)
def test_is_secret_name_refuses_other_names(name: str):
    assert not is_secret_name(name)


def test_masked_values_are_restored_from_the_previous_configuration():
    sent = masked_text(TEXT).replace("LEVEL=debug", "LEVEL=info")
    restored = unmasked_text(sent, read(TEXT).data, TEXT)
    expected = read(TEXT).data
    expected["environment"]["environment_variables"][1] = "LEVEL=info"
    assert read(restored).data == expected
    assert masked_paths(sent)
    assert masked_paths(restored) == []


def test_masked_variables_are_restored_by_name_from_the_effective_configuration():
    config = {"environment": {"environment_variables": {"cpu": ["A=b", "A_TOKEN=hunter2"], "cuda": []}}}
    sent = f"environment:\n  environment_variables: ['A_TOKEN={MASK}']\n"
    assert yaml.safe_load(unmasked_text(sent, config, "name: x"))["environment"]["environment_variables"] == [
        "A_TOKEN=hunter2"
    ]


def test_unmasking_a_value_without_an_original_is_refused():
    with pytest.raises(StillMasked, match=r"data\.secrets\.other"):
        unmasked_text(f"data: {{secrets: {{other: '{MASK}'}}}}", read(TEXT).data, TEXT)


def test_a_mask_at_a_path_without_a_secret_is_unchanged():
    text = f"name: '{MASK}'\n"
    assert masked_paths(text) == []
    assert unmasked_text(text, {}, "") == text
