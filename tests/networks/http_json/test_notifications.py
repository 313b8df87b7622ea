"""Notifications to `http_json`: their signatures and their fields."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest

from sandbox_sim.ports.network import UnreadableNotification
from sandbox_sim.records.reports import Echo, Outcome
from tests.networks.http_json.api import REFERENCE, changed, made
from tests.networks.http_json.dialects import notification

pytestmark = pytest.mark.decision("D39")

BODY = b'{ "state": "PAID", "id": "0b8a2f4e-7a3d-4c1e-9d53-6f1f2b7c8d90" }'
KEY = "signature key, Ɛ"


def signed(**table: Any) -> dict[str, Any]:
    return {"trust": "signed", "signature_header": "X-Sign", **table}


def digest(algorithm: str, body: bytes = BODY) -> bytes:
    return hmac.digest(KEY.encode(), body, algorithm)


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize(
    ("encoding", "write"),
    [
        ("hex", lambda raw: raw.hex()),
        ("hex", lambda raw: raw.hex().upper()),
        ("base64", lambda raw: base64.b64encode(raw).decode()),
    ],
)
@pytest.mark.parametrize("prefix", ["", "v1="])
def test_a_signature_counts_in_the_form_of_the_table_and_over_the_exact_bytes(
    algorithm: str, encoding: str, write: Callable[[bytes], str], prefix: str
) -> None:
    network = made(
        signature_key=KEY,
        notification=signed(algorithm=algorithm, encoding=encoding, prefix=prefix),
    )
    good = prefix + write(digest(algorithm))
    other = prefix + write(digest({"sha256": "sha512", "sha512": "sha256"}[algorithm]))

    assert network.verify(notification("", {"X-Sign": good}, BODY))
    assert not network.verify(notification("", {"X-Sign": good}, BODY + b" "))
    assert not network.verify(notification("", {"X-Other": good}, BODY))
    # The prefix must be there, once.
    for wrong in (other, "v1=" + good, "Ɛ" + good, prefix + "\udcff", good[1:]):
        assert not network.verify(notification("", {"X-Sign": wrong}, BODY))


def test_auth_secret_signs_notifications_if_signature_key_is_not_set() -> None:
    network = made(auth="bearer", auth_secret="secret", notification=signed())
    good = hmac.new(b"secret", BODY, hashlib.sha256).hexdigest()

    assert network.verify(notification("", {"x-sign": good}, BODY))


@pytest.mark.parametrize("table", [None, {"trust": "hint"}])
def test_a_hint_is_never_verified(table: dict[str, str] | None) -> None:
    settings = {} if table is None else {"notification": table}
    network = made(signature_key=KEY, **settings)

    assert not network.verify(notification("", {"x-sign": digest("sha256").hex(), "": "x"}, BODY))


def test_the_path_of_a_notification_names_the_attempt_if_submit_sends_the_url() -> None:
    with_address = changed(submit__json={"to": "{callback_url}"}, notification={"trust": "hint"})
    without = changed(notification={"trust": "hint"})

    (by_address,) = made(**with_address).parse(notification("A1", {}, BODY))
    (by_reference,) = made(**without).parse(notification("A1", {}, BODY))

    assert (by_address.attempt_id, by_reference.attempt_id) == ("A1", "")
    assert by_address.reference == by_reference.reference == REFERENCE
    assert by_address.outcome is Outcome.SUCCEEDED
    assert by_address.echo == Echo(REFERENCE)


def test_a_word_outside_the_table_decides_nothing() -> None:
    network = made(notification={"trust": "hint", "outcomes": {"DONE": "succeeded"}})

    (found,) = network.parse(notification("A1", {}, BODY))

    assert found.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("body", [b"", b"[]", b'{"state": ""}', b'{"state": {}}', b"state=PAID"])
def test_a_notification_without_a_word_or_a_table_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableNotification, match="not a JSON object with a word"):
        made(notification={"trust": "hint"}).parse(notification("A1", {}, body))
    with pytest.raises(UnreadableNotification, match="not configured"):
        made().parse(notification("A1", {}, BODY))
