"""Certificates for tests: of an authority of their own, in PEM files."""

import ssl
from pathlib import Path
from typing import NamedTuple

import trustme

AUTHORITY = trustme.CA()


class CertificateFiles(NamedTuple):
    """The files of a server's certificate and its private key."""

    cert: Path
    key: Path


def certificate_files(folder: Path) -> CertificateFiles:
    """A certificate for 127.0.0.1 and localhost, written to this folder."""
    files = CertificateFiles(folder / "cert.pem", folder / "key.pem")
    issued = AUTHORITY.issue_cert("127.0.0.1", "localhost")
    issued.cert_chain_pems[0].write_to_path(files.cert)
    issued.private_key_pem.write_to_path(files.key)
    return files


def trusting() -> ssl.SSLContext:
    """The context of a client that trusts the authority."""
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context
