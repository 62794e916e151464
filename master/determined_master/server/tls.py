"""The certificate that the master serves with: a self-signed pair, its fingerprint and its end."""

import argparse
import ipaddress
import socket
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from determined.client.certificates import fingerprint
from determined_launch.atomic_file import write_atomic

DAYS = 825
"""Validity of a certificate; browsers refuse longer ones."""
WARN_DAYS = 30
CERTIFICATE, KEY = "master.crt", "master.key"


def make_pair(names: Sequence[str], now: datetime, *, days: int = DAYS) -> tuple[bytes, bytes]:
    """Returns a self-signed certificate and its private key, as PEM.

    Args:
        names: host names and IP addresses under which the master is reached.
        now: time from which the certificate is valid, less five minutes for clocks that are behind.
        days: validity.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    usage = dict.fromkeys(
        ("content_commitment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign"), False
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_alternative(each) for each in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, key_encipherment=True, encipher_only=False, decipher_only=False, **usage
            ),
            critical=True,
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def notes(file: Path, now: datetime) -> list[tuple[bool, str]]:
    """Returns lines for the master's log about its certificate, each with True if it is a warning."""
    certificate = x509.load_pem_x509_certificates(file.read_bytes())[0]
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    lines = [(False, f"certificate {file}: SHA-256 fingerprint {fingerprint(pem)}")]
    end = certificate.not_valid_after_utc
    if end <= now:
        lines.append((True, f"the certificate {file} has expired on {end:%Y-%m-%d}; clients will refuse it"))
    elif end - now <= timedelta(days=WARN_DAYS):
        lines.append((True, f"the certificate {file} expires on {end:%Y-%m-%d}"))
    return lines


def main(argv: Sequence[str]) -> int:
    """Runs ``det-master make-certificate`` and returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="det-master make-certificate", description="Writes a self-signed certificate and its private key."
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="host name or IP address of the master (repeatable; localhost and this machine's name are included)",
    )
    parser.add_argument("--days", type=int, default=DAYS, help=f"validity (default: {DAYS})")
    parser.add_argument("folder", type=Path, help="folder for master.crt and master.key")
    args = parser.parse_args(argv)
    names = list(dict.fromkeys([*args.name, socket.gethostname(), "localhost", "127.0.0.1", "::1"]))
    certificate, key = args.folder / CERTIFICATE, args.folder / KEY
    for file in (certificate, key):
        if file.exists():
            print(f"det-master: {file} exists; remove it first, or name another folder", file=sys.stderr)
            return 2
    try:
        args.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        made, private = make_pair(names, datetime.now(UTC), days=args.days)
        write_atomic(key, private.decode())
        write_atomic(certificate, made.decode())
        certificate.chmod(0o644)
    except (OSError, OverflowError, ValueError) as error:
        print(f"det-master: cannot write the certificate: {error}", file=sys.stderr)
        return 1
    print(f"wrote {certificate} for {', '.join(names)}, and its key {key}")
    print(f"SHA-256 fingerprint: {fingerprint(made.decode())}")
    print(f"start the master with: det-master --tls-cert {certificate} --tls-key {key}")
    print(f"clients and agents:    export DET_MASTER_CERT_FILE=COPY_OF_{CERTIFICATE}")
    return 0


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
