"""A certificate for loopback that only the test that made it trusts."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def server(self) -> ssl.SSLContext:
        """What a peer serves with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            both = Path(folder, "both.pem")
            both.write_bytes(self.key + self.certificate)
            context.load_cert_chain(both)
        return context

    def client(self) -> ssl.SSLContext:
        """What a client needs to trust the peer, and nobody else."""
        return ssl.create_default_context(cadata=self.certificate.decode())


def loopback_certificate(
    *, address: str = "127.0.0.1", name: str = "localhost", valid_s: float = 3600
) -> Certificate:
    """A fresh certificate for a name and an address, valid from an hour ago on.

    `valid_s` is counted from now; a negative one makes a certificate that has expired.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(seconds=valid_s))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        made.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
