"""TLS to the master: what is trusted, and what a user reads where it is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_master import serving
from tests.support.tls_server import Pair, tls_server, written_pair

from determined.client import auth_store, certificates
from determined.client.certificates import Trust
from determined.client.session import Session
from determined.errors import MasterUnreachable, UntrustedCertificate


@pytest.fixture(autouse=True)
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in (certificates.FILE_VARIABLE, certificates.NAME_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return written_pair(tmp_path / "pair")


@pytest.fixture
def url(pair: Pair) -> Iterator[str]:
    with tls_server(pair) as (url, _):
        yield url


def refused(url: str, trust: Trust | None = None) -> str:
    waits: list[float] = []
    with Session(url, trust=trust, sleep=waits.append) as session, pytest.raises(UntrustedCertificate) as failed:
        session.get("/x")
    assert waits == []  # repeating it would help nobody
    return failed.value.message


def test_the_file_of_the_variable_is_trusted(url: str, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(certificates.FILE_VARIABLE, str(pair.certificate))
    with Session(url) as session:
        assert session.get("/x") == {"token": "T"}


def test_an_unknown_certificate_is_refused_and_the_text_says_what_to_do(url: str) -> None:
    text = refused(url)
    assert text.startswith(f"the certificate of {url} is not trusted: self")
    assert certificates.FILE_VARIABLE in text
    assert "det user login" in text


@pytest.mark.parametrize(("age_days", "said"), [(-2, "not yet valid"), (60, "expired")])
def test_a_wrong_clock_is_named_where_a_certificate_is_not_valid_now(tmp_path: Path, age_days: int, said: str) -> None:
    pair = written_pair(tmp_path / "other", age_days=age_days)
    with tls_server(pair) as (url, _):
        text = refused(url, Trust(file=str(pair.certificate)))
    assert said in text
    assert "the clock of this machine shows 2" in text
    assert certificates.FILE_VARIABLE not in text


def test_noverify_accepts_every_certificate(url: str) -> None:
    with Session(url, trust=Trust(file="noverify")) as session:
        assert session.get("/x") == {"token": "T"}


def test_another_certificate_than_the_named_one_is_refused(url: str, tmp_path: Path) -> None:
    other = written_pair(tmp_path / "other")
    text = refused(url, Trust(file=str(other.certificate)))
    assert f"{other.certificate}, which is not its certificate nor that of its authority" in text


def test_a_confirmed_certificate_is_trusted_and_another_one_is_not(url: str, pair: Pair, tmp_path: Path) -> None:
    auth_store.trust_certificate(url, pair.certificate.read_text())
    with Session(url) as session:
        assert session.get("/x") == {"token": "T"}
    with tls_server(written_pair(tmp_path / "renewed")) as (renewed, _):
        auth_store.trust_certificate(renewed, pair.certificate.read_text())
        assert "not the one that was confirmed before" in refused(renewed)


def test_the_name_of_the_variable_is_expected_in_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = written_pair(tmp_path / "named", "gpu-1.lab")
    monkeypatch.setenv(certificates.FILE_VARIABLE, str(named.certificate))
    with tls_server(named) as (url, _):
        assert "IP address mismatch" in refused(url)
        monkeypatch.setenv(certificates.NAME_VARIABLE, "gpu-1.lab")
        with Session(url) as session:
            assert session.get("/x") == {"token": "T"}


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    old = written_pair(tmp_path / "old", age_days=40, days=10)
    with tls_server(old) as (url, _):
        assert "certificate has expired" in refused(url, Trust(file=str(old.certificate)))


@pytest.mark.parametrize(
    ("content", "text"), [(None, "No such file or directory"), ("no certificate", "no certificate in PEM format")]
)
def test_a_file_that_is_no_certificate_is_named(url: str, tmp_path: Path, content: str | None, text: str) -> None:
    file = tmp_path / "given.crt"
    if content is not None:
        file.write_text(content)
    message = refused(url, Trust(file=str(file)))
    assert message.startswith(f"DET_MASTER_CERT_FILE: {file}: ")
    assert text in message


def test_a_master_without_tls_at_an_https_address_is_named() -> None:
    with serving() as master:
        text = refused(master.url.replace("http:", "https:"))
    assert text.endswith("does not speak TLS; its address may begin with http://")


def test_a_master_with_tls_at_an_http_address_does_not_answer(url: str) -> None:
    session = Session(url.replace("https:", "http:"), sleep=lambda _: None)
    with session, pytest.raises(MasterUnreachable, match=r"if the master uses TLS, its address begins with https://"):
        session.get("/x")


def test_a_fingerprint_is_written_as_browsers_do(url: str, pair: Pair) -> None:
    host, _, port = url.removeprefix("https://").partition(":")
    pem = certificates.fetch(host, int(port))
    assert certificates.fingerprint(pem) == certificates.fingerprint(pair.certificate.read_text())
    assert len(certificates.fingerprint(pem).split(":")) == 32
