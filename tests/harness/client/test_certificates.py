"""TLS to the master: trusted certificates, and the errors about untrusted ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.x509 import NameOID
from tests.support.fake_master import serving
from tests.support.tls_server import Pair, pair_of_older_tools, tls_server, written_pair

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


def refusal_of(url: str, trust: Trust | None = None) -> str:
    """Sends one request that must fail. Returns the message of the error."""
    waits: list[float] = []
    with Session(url, trust=trust, sleep=waits.append) as session, pytest.raises(UntrustedCertificate) as failed:
        session.get("/x")
    assert waits == []  # a repetition would not help
    return failed.value.message


def test_the_certificate_that_det_master_cert_file_names_is_trusted(
    url: str, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(certificates.FILE_VARIABLE, str(pair.certificate))
    with Session(url) as session:
        assert session.get("/x") == {"token": "T"}


def test_an_unknown_certificate_is_refused_with_the_remedy(url: str) -> None:
    text = refusal_of(url)
    assert text.startswith(f"the certificate of {url} is not trusted: self")
    assert certificates.FILE_VARIABLE in text
    assert "det user login" in text


@pytest.mark.parametrize(("age_days", "problem"), [(-2, "not yet valid"), (60, "expired")])
def test_a_certificate_that_is_not_valid_now_is_refused_with_the_time_of_this_machine(
    tmp_path: Path, age_days: int, problem: str
) -> None:
    pair = written_pair(tmp_path / "other", age_days=age_days)
    with tls_server(pair) as (url, _):
        text = refusal_of(url, Trust(file=str(pair.certificate)))
    assert problem in text
    assert "the clock of this machine shows 2" in text
    assert certificates.FILE_VARIABLE not in text


def test_noverify_accepts_every_certificate(url: str) -> None:
    with Session(url, trust=Trust(file="noverify")) as session:
        assert session.get("/x") == {"token": "T"}


def test_a_certificate_other_than_the_named_one_is_refused(url: str, tmp_path: Path) -> None:
    other = written_pair(tmp_path / "other")
    text = refusal_of(url, Trust(file=str(other.certificate)))
    assert f"{other.certificate}, which is not its certificate nor that of its authority" in text


def test_a_confirmed_certificate_is_trusted_and_another_one_is_not(url: str, pair: Pair, tmp_path: Path) -> None:
    auth_store.trust_certificate(url, pair.certificate.read_text())
    with Session(url) as session:
        assert session.get("/x") == {"token": "T"}
    with tls_server(written_pair(tmp_path / "renewed")) as (renewed, _):
        auth_store.trust_certificate(renewed, pair.certificate.read_text())
        assert "not the one that was confirmed before" in refusal_of(renewed)


def test_det_master_cert_name_replaces_the_expected_host_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = written_pair(tmp_path / "named", "gpu-1.lab")
    monkeypatch.setenv(certificates.FILE_VARIABLE, str(named.certificate))
    with tls_server(named) as (url, _):
        assert "IP address mismatch" in refusal_of(url)
        monkeypatch.setenv(certificates.NAME_VARIABLE, "gpu-1.lab")
        with Session(url) as session:
            assert session.get("/x") == {"token": "T"}


@pytest.mark.parametrize("kind", ["common name", "wildcard", "addresses"])
def test_a_certificate_is_verified_by_the_name_that_it_has(kind: str, tmp_path: Path) -> None:
    if kind == "common name":
        pair = pair_of_older_tools(tmp_path / "old", "gpu-1.lab")
    else:
        pair = written_pair(
            tmp_path / "new", *{"wildcard": ["*.lab.example.org"], "addresses": ["10.0.0.1", "::1"]}[kind]
        )
    name = certificates.verified_name(pair.certificate.read_text())
    with tls_server(pair) as (url, _), Session(url, trust=Trust(str(pair.certificate), name)) as session:
        assert session.get("/x") == {"token": "T"}


def test_a_certificate_that_names_no_host_is_verified_by_no_name(tmp_path: Path) -> None:
    nameless = pair_of_older_tools(tmp_path, "Example", NameOID.ORGANIZATION_NAME)
    assert certificates.verified_name(nameless.certificate.read_text()) == ""


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    old = written_pair(tmp_path / "old", age_days=40, days=10)
    with tls_server(old) as (url, _):
        assert "certificate has expired" in refusal_of(url, Trust(file=str(old.certificate)))


@pytest.mark.parametrize(
    ("content", "text"), [(None, "No such file or directory"), ("no certificate", "no certificate in PEM format")]
)
def test_a_missing_or_invalid_certificate_file_is_named(
    url: str, tmp_path: Path, content: str | None, text: str
) -> None:
    file = tmp_path / "given.crt"
    if content is not None:
        file.write_text(content)
    message = refusal_of(url, Trust(file=str(file)))
    assert message.startswith(f"DET_MASTER_CERT_FILE: {file}: ")
    assert text in message


def test_an_https_address_of_a_master_without_tls_is_refused_with_the_reason() -> None:
    with serving() as master:
        text = refusal_of(master.url.replace("http:", "https:"))
    assert text.endswith("does not speak TLS; its address may begin with http://")


def test_an_http_address_of_a_master_with_tls_is_refused_with_a_hint(url: str) -> None:
    session = Session(url.replace("https:", "http:"), sleep=lambda _: None)
    with session, pytest.raises(MasterUnreachable, match=r"if the master uses TLS, its address begins with https://"):
        session.get("/x")


def test_the_fingerprint_of_a_fetched_certificate_has_32_bytes(url: str, pair: Pair) -> None:
    host, _, port = url.removeprefix("https://").partition(":")
    pem = certificates.fetch(host, int(port))
    assert certificates.fingerprint(pem) == certificates.fingerprint(pair.certificate.read_text())
    assert len(certificates.fingerprint(pem).split(":")) == 32
