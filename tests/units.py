"""Calls of a store by themselves."""

from collections.abc import Awaitable, Callable
from operator import methodcaller
from typing import Any, cast

from sandbox_sim.ports import Store, Unit


def unit_of(store: Store) -> Unit:
    """The calls of a unit, each of which is a unit of work by itself."""
    return cast("Unit", _Calls(store))


class _Calls:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return lambda *values, **named: self._store.run(methodcaller(name, *values, **named))
