"""The input of the control API that several routes share: the base model, queries and `wait`."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, TypedDict, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from sandbox_sim.domain.control.listing import Listing

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
LARGEST_INTEGER: Final = 2**63 - 1
SERVICE_ID: Final = f"an integer from 1 to {LARGEST_INTEGER}"

R = TypeVar("R")


class Input(BaseModel):
    """A body or a query of the control API. It has strict types and refuses unknown fields.

    The description of a field ends the sentence "service_id must be …". Error messages contain it.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


_MOST_DIGITS: Final = 19


def _digits(value: object) -> int:
    """Read an integer of a query. `+5`, `5.0` and `5_000` are no integers there."""
    if isinstance(value, str) and re.fullmatch(f"[0-9]{{1,{_MOST_DIGITS}}}", value):
        return int(value)
    raise PydanticCustomError("digits", "must be an integer")


_InQuery: Final = BeforeValidator(_digits)
# The bounds stand first: the schema of a type that is validated in Python has none.
QueryServiceId = Annotated[int, Field(gt=0, le=LARGEST_INTEGER), _InQuery]
QueryId = Annotated[int, Field(ge=1, le=LARGEST_INTEGER), _InQuery]
QueryLimit = Annotated[int, Field(ge=1, lt=10**_MOST_DIGITS), _InQuery]


class Nothing(Input):
    """No field at all."""


class ServiceQuery(Input):
    """One service, or all."""

    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)


class PageQuery(Input):
    """The query of a list. Lists are newest first.

    A larger limit than `MAX_LIMIT` is no error: `page_size` is what the list keeps to.
    """

    limit: QueryLimit = Field(
        DEFAULT_LIMIT, description=f"an integer above 0 (at most {MAX_LIMIT} are given)"
    )

    @property
    def page_size(self) -> int:
        """How many items a page has at most."""
        return min(self.limit, MAX_LIMIT)


class ServiceListQuery(PageQuery):
    """The query of a list of one service, or of all, whose ids are texts."""

    after: str | None = Field(None, description="the id after which the list goes on")
    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)

    @property
    def listing(self) -> Listing:
        """What to read: one more than the page holds, which shows that there is a next page."""
        return Listing(self.service_id, self.after, self.page_size + 1)

    def page(self, found: Sequence[R], id_of: Callable[[R], str]) -> tuple[Sequence[R], str | None]:
        """The page, and the id after which the next one begins, or None on the last one."""
        page = found[: self.page_size]
        return page, id_of(page[-1]) if len(found) > len(page) else None


class ListQuery(PageQuery):
    """The query of a list whose ids are numbers."""

    after: QueryId | None = Field(None, description="the id after which the list goes on")


class Wait(Input):
    """The body of `wait`: how many records have to match, and for how much real time to wait."""

    match: dict[str, Any] = Field({}, description="an object of fields and the values they have")
    count: int = Field(1, ge=1, le=1000, description="an integer from 1 to 1000")
    timeout_s: float = Field(5, ge=0, le=600, description="a number of seconds from 0 to 600")


class Deleted(TypedDict):
    """The answer of a route that deletes."""

    deleted: Annotated[int, "how many there were"]
