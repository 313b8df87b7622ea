"""Certificates of the server: from files, or of an authority of this machine."""

import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from sandbox_sim.adapters.tls import (
    TlsError,
    authority_file,
    client_context,
    for_development,
    from_files,
)
from tests.tls_files import CertificateFiles, certificate_files

NOW = datetime(2026, 1, 1, 9, tzinfo=UTC)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """Shake hands in memory. Raises `ssl.SSLError` where the client refuses the certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    done = 0
    while done < 2:
        done = 0
        for side in sides:
            try:
                side.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                pass


def encrypted(files: CertificateFiles) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    coding = Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    files.key.write_bytes(key.private_bytes(*coding))


def with_another_key(files: CertificateFiles) -> None:
    before = files.cert.read_bytes()
    certificate_files(files.cert.parent)
    files.cert.write_bytes(before)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda files: files.key.unlink(), "key.pem cannot be read"),
        (lambda files: files.cert.write_text("text"), "are not a certificate and a private key"),
        (encrypted, "needs a passphrase; give a key without one"),
        (with_another_key, "is not the private key of"),
    ],
    ids=["missing", "not PEM", "encrypted", "another key"],
)
def test_unusable_certificate_files_are_refused_with_the_reason(
    tmp_path: Path, spoil: Callable[[CertificateFiles], None], sentence: str
) -> None:
    files = certificate_files(tmp_path)
    context = from_files(str(files.cert), str(files.key))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.cert_store_stats() == {"x509": 0, "crl": 0, "x509_ca": 0}
    spoil(files)

    with pytest.raises(TlsError, match=sentence):
        from_files(str(files.cert), str(files.key))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "pay.shop.test"])
def test_clients_that_trust_the_authority_accept_every_later_certificate(
    tmp_path: Path, host: str
) -> None:
    folder = tmp_path / "tls"
    for_development(folder, [], NOW)
    client = client_context(authority_file(folder))

    now = datetime.now(UTC)  # the client compares the certificate with the machine's clock
    server = for_development(folder, ["pay.shop.test", "no name", "shop-*"], now)

    handshake(server, client, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client, "other.test")


def test_the_authority_key_is_private_and_an_unreadable_one_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    for_development(folder, [], NOW)

    modes = {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}

    assert modes == {"authority.pem": 0o644, "authority-key.pem": 0o600}
    assert b"PRIVATE" not in authority_file(folder).read_bytes()

    (folder / "authority-key.pem").write_text("no key")
    with pytest.raises(TlsError, match="remove the folder, or give --cert and --key"):
        for_development(folder, [], NOW)


def test_servers_that_start_at_the_same_time_get_the_same_authority(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        now = datetime.now(UTC)
        servers = list(pool.map(lambda _: for_development(tmp_path, [], now), range(4)))

    client = client_context(authority_file(tmp_path))
    for server in servers:
        handshake(server, client, "localhost")
