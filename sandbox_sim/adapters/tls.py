"""TLS of the server: a certificate from files, or one of a certificate authority of this machine.

The authority is for development. It is made once, in the user's state directory, and every start
issues a certificate for the names of the server. Clients trust the authority once.
"""

import contextlib
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Final

from sandbox_sim.values.hosts import parse_address

if TYPE_CHECKING:
    import trustme

_AUTHORITY: Final = "authority.pem"
# The private key of the authority and its certificate: one file, so that they always belong
# together.
_AUTHORITY_KEY: Final = "authority-key.pem"
_ORGANIZATION: Final = "sandbox_sim, for development on this machine"
# Clients accept no certificate that is valid for longer than 398 days.
_VALIDITY: Final = timedelta(days=397)
_DEFAULT_NAMES: Final = ("localhost", "127.0.0.1", "::1", "host.docker.internal")
_BEGIN_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_ALPN: Final = ["http/1.1"]


class TlsError(ValueError):
    """A certificate or a key cannot be used; the text says why."""


def from_files(cert: str, key: str) -> ssl.SSLContext:
    """The context of a server with this certificate chain and this private key, both PEM files.

    Raises `TlsError` if they cannot be read, are not PEM, do not fit, or need a passphrase.
    """
    context = _server_context()
    for path in (cert, key):
        try:
            Path(path).expanduser().open("rb").close()
        except (OSError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or error
            raise TlsError(f"{path} cannot be read: {why}") from None
    try:
        paths = Path(cert).expanduser(), Path(key).expanduser()
        context.load_cert_chain(*paths, password=_no_passphrase)
    except _PassphraseNeededError:
        raise TlsError(f"{key} needs a passphrase; give a key without one") from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(f"{key} is not the private key of {cert}") from None
        raise TlsError(f"{cert} and {key} are not a certificate and a private key in PEM") from None
    return context


def for_development(folder: Path, names: Iterable[str], now: datetime) -> ssl.SSLContext:
    """The context of a server with a certificate of the authority in this folder.

    folder: created, with a new authority, if it does not exist.
    names: host names and addresses that the certificate is for, in addition to those of loopback.
    Names that no certificate can have are left out.
    now: the certificate is valid for 397 days from then on.
    Raises `TlsError` if the authority cannot be read or written.
    """
    try:
        authority = _authority(folder)
    except (OSError, ValueError) as error:
        reason = f"the authority in {folder} cannot be used: {error}"
        raise TlsError(f"{reason}; remove the folder, or give --cert and --key") from None
    candidates = (*_DEFAULT_NAMES, *names, socket.gethostname())
    certified_names = dict.fromkeys(name for name in candidates if _is_certifiable_name(name))
    leaf = authority.issue_cert(
        *certified_names,
        organization_name=_ORGANIZATION,
        organization_unit_name="server",
        not_before=now - timedelta(days=1),
        not_after=now + _VALIDITY,
    )
    context = _server_context()
    leaf.configure_cert(context)
    return context


def authority_file(folder: Path) -> Path:
    """Where the certificate of the authority is; clients that trust this file trust the server."""
    return folder / _AUTHORITY


def client_context(trusted: Path) -> ssl.SSLContext:
    """The context of a client that trusts what this machine trusts, and a PEM file if it exists.

    A file without a certificate adds nothing.
    """
    context = ssl.create_default_context()
    with contextlib.suppress(OSError):  # `SSLError` is one
        context.load_verify_locations(trusted)
    return context


def _server_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(_ALPN)
    return context


class _PassphraseNeededError(Exception):
    """OpenSSL asks for a passphrase; without a callback it would ask on the terminal."""


def _no_passphrase() -> str:
    raise _PassphraseNeededError


def _authority(folder: Path) -> "trustme.CA":
    """The authority of a folder; servers that start at the same time get the same one."""
    import trustme  # noqa: PLC0415 -- only `tls` needs it

    key_file = folder / _AUTHORITY_KEY
    if not key_file.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = trustme.CA(organization_name=_ORGANIZATION, path_length=0)
        content = authority.private_key_pem.bytes() + authority.cert_pem.bytes()
        # `FileExistsError`: another server was first.
        with _temporary_file(folder, content) as temporary, contextlib.suppress(FileExistsError):
            key_file.hardlink_to(temporary)
    key, _, cert = key_file.read_bytes().partition(_BEGIN_CERTIFICATE)
    certificate = _BEGIN_CERTIFICATE + cert
    public_file = authority_file(folder)
    if not public_file.exists() or public_file.read_bytes() != certificate:
        with _temporary_file(folder, certificate) as temporary:
            temporary.chmod(0o644)
            temporary.replace(public_file)
    return trustme.CA.from_pem(certificate, key)


@contextlib.contextmanager
def _temporary_file(folder: Path, content: bytes) -> Iterator[Path]:
    """A file that only its owner can read; deleted at the end if it was not renamed."""
    with NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path = Path(file.name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _is_certifiable_name(name: str) -> bool:
    import idna  # noqa: PLC0415 -- trustme needs it too

    if not name or parse_address(name) is not None:
        return bool(name)
    try:
        idna.encode(name.removeprefix("*."), uts46=True)
    except idna.IDNAError:
        return False
    return True
