"""Odd values for requests, and a gateway to send them to, on a SQLite file as `serve` has."""

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, settings, strategies as st

from tests.web.threaded_gateway import running
from tests.web.wire import Wire

numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 9, 59, 2**31, 2**63, 10**400, 1e-320, 10000, 10000.01]),
)
ODD_TEXTS = [
    "",
    " ",
    "\x00",
    "NaN",
    "\u202e",
    "\ud800",
    "\r\nX: 1",
    "😀" * 40,
    "€" * 200,
    "x" * 9000,
]
texts = st.one_of(st.text(max_size=30), st.sampled_from(ODD_TEXTS))
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
digits = st.text("0123456789", max_size=16)
PREFIXES = ["", "0244", "0200", "0270", "233244", "+233244", "411111", "200000000"]
phones = st.builds(str.__add__, st.sampled_from(PREFIXES), digits)


def examples(count: int, times: int = 75) -> settings:
    """The settings for `count` examples; the profile `long` runs `times` as many."""
    return settings(
        max_examples=count * times if settings.get_current_profile_name() == "long" else count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def dumped(document: object, *, ascii_only: bool = True) -> bytes:
    """Return JSON as Python writes it, with NaN, Infinity and lone surrogates."""
    return json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running gateway."""
    with running(f"sqlite:{tmp_path_factory.mktemp('fuzz') / 'state.sqlite3'}") as url:
        yield url


@pytest.fixture(scope="module")
def wire(url: str) -> Iterator[Wire]:
    """A kept-alive connection to the gateway."""
    with closing(Wire(url)) as wire:
        yield wire
