"""Mistakes in how a request is sent: its path, its content type, its protocol. Source: D5, D36."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from aiohttp import hdrs
from aiohttp.http_exceptions import HttpProcessingError

from sandbox_sim.domain.refused_values import quoted
from sandbox_sim.domain.response_codes import Code, Reply

JSON: Final = "application/json"
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
# How much of two paths must be the same; longer ones are not compared, because that takes long.
_ENOUGH: Final = 0.6
_LONGEST: Final = 200
TLS_ON_A_PLAIN_PORT: Final = (
    "the client speaks TLS (https), and this port is plain HTTP: use http://"
)


def no_such_path(path: str, known: Iterable[str]) -> Reply:
    """The reply to a path that the interface does not have, with the one probably meant."""
    near = [] if len(path) > _LONGEST else _near(path, known)
    hint = f"; did you mean {near[0]}?" if near else ""
    message = f"Not found: the interface has no such path{hint}"
    return Reply(Code.NOT_FOUND, "D5", f"there is no path {quoted(path)}{hint}", message)


def _near(path: str, known: Iterable[str]) -> list[str]:
    by_letters = {each.lower(): each for each in known}
    plain = path.lower().rstrip("/").replace("-", "_").replace("//", "/")
    if near := [each for letters, each in by_letters.items() if plain.endswith(letters)]:
        return [max(near, key=len)]
    return [by_letters[each] for each in difflib.get_close_matches(plain, by_letters, 1, _ENOUGH)]


def form_type(headers: Mapping[str, str]) -> tuple[str, ...]:
    """A warning where the header of a JSON body says that it is a form."""
    given = headers.get(hdrs.CONTENT_TYPE, JSON)
    if given == JSON or not given.lower().startswith(_FORMS):
        return ()
    name = given.partition(";")[0].strip().lower()
    return (
        f"the body is JSON, and the header Content-Type says {quoted(name)[1:-1]}: send {JSON}",
    )


def is_tls(error: BaseException | None) -> bool:
    """Whether bytes could not be parsed because the client speaks TLS; aiohttp's parser says so."""
    return isinstance(error, HttpProcessingError) and "HTTPS" in str(error)
