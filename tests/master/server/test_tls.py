"""The master's certificate: refused settings, a self-signed pair, and its log lines."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.tls_server import written_pair

from determined_master.__main__ import main
from determined_master.server import tls
from determined_master.settings.read_settings import SettingsError, read_settings

NOW = datetime.now(UTC)


def problem(*argv: str) -> str:
    with pytest.raises(SettingsError) as failed:
        read_settings(argv, {"HOME": "/nowhere"})
    return str(failed.value)


def test_a_certificate_without_a_key_is_refused(tmp_path: Path) -> None:
    pair = written_pair(tmp_path)
    assert "TLS needs both tls_cert and tls_key" in problem("--tls-cert", str(pair.certificate))
    assert "TLS needs both tls_cert and tls_key" in problem("--tls-key", str(pair.key))


def test_certificate_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    pair, other = written_pair(tmp_path / "one"), written_pair(tmp_path / "other")
    missing = tmp_path / "missing.crt"
    assert f"{missing}: No such file" in problem("--tls-cert", str(missing), "--tls-key", str(pair.key))
    text = problem("--tls-cert", str(pair.certificate), "--tls-key", str(other.key))
    assert "the key does not belong to the certificate" in text
    pair.certificate.write_text("no certificate")
    assert "no PEM file" in problem("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))


def test_the_older_names_of_the_tls_settings_are_read(tmp_path: Path) -> None:
    pair = written_pair(tmp_path)
    file = tmp_path / "master.yaml"
    file.write_text(f"security:\n  tls:\n    cert: {pair.certificate}\n    key: {pair.key}\n")
    settings = read_settings(["--config", str(file)], {"HOME": "/nowhere"})
    assert (settings.tls_cert, settings.tls_key) == (pair.certificate, pair.key)


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("tls:\n    certificate: a.crt", "security.tls.certificate has no effect on this master"),
        ("sssh: {}", "security.sssh has no effect on this master"),
    ],
)
def test_security_settings_without_an_effect_are_refused(tmp_path: Path, section: str, text: str) -> None:
    file = tmp_path / "master.yaml"
    file.write_text(f"security:\n  {section}\n")
    assert f"{file}:2:3: {text}" in problem("--config", str(file))


def test_a_certificate_is_written_once_and_its_key_is_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tls"
    assert main(["make-certificate", str(folder), "--name", "gpu-1.lab", "--name", "10.0.0.5"]) == 0
    output = capsys.readouterr().out
    assert "for gpu-1.lab, 10.0.0.5, " in output
    assert "SHA-256 fingerprint: " in output
    assert stat.S_IMODE((folder / tls.KEY).stat().st_mode) == 0o600
    read_settings(["--tls-cert", str(folder / tls.CERTIFICATE), "--tls-key", str(folder / tls.KEY)], {"HOME": "/x"})
    before = (folder / tls.KEY).read_bytes()
    assert main(["make-certificate", str(folder)]) == 2
    assert "exists" in capsys.readouterr().err
    assert (folder / tls.KEY).read_bytes() == before


@pytest.mark.parametrize(
    ("days", "texts"),
    [(90, []), (20, ["expires on "]), (-1, ["has expired on "])],
)
def test_the_log_names_the_fingerprint_and_warns_of_the_end(tmp_path: Path, days: int, texts: list[str]) -> None:
    pair = written_pair(tmp_path, days=100)
    notes = tls.notes(pair.certificate, NOW + timedelta(days=100 - days))
    assert "SHA-256 fingerprint" in notes[0][1]
    assert [is_warning for is_warning, _ in notes] == [False, *[True] * len(texts)]
    for (_, note), text in zip(notes[1:], texts, strict=True):
        assert text in note
