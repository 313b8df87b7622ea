"""Made-up people under `/_sandbox/seed`. Source: docs/control-api.md."""

from collections.abc import Sequence
from typing import TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.gateway.control.seeding import Seeding
from sandbox_sim.web.control.errors import SEEDED_ALREADY, error_response
from sandbox_sim.web.control.input_models import LARGEST_INTEGER, SERVICE_ID, Input
from sandbox_sim.web.public_address import PublicAddress
from sandbox_sim.web.routes import Answer, Body, Route

MOST = 1000
# Where the callbacks of payments go that are still pending.
_INBOX = "/_sandbox/inbox/seed"


class SeedBody(Input):
    """The body of `seed`; every field is optional."""

    seed: int = Field(
        42, ge=0, le=LARGEST_INTEGER, description=f"an integer from 0 to {LARGEST_INTEGER}"
    )
    count: int = Field(20, ge=1, le=MOST, description=f"an integer from 1 to {MOST}")
    service_id: int = Field(55, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class PersonView(TypedDict):
    """A made-up customer."""

    name: str
    customer_number: str
    nw: str


class Seeded(TypedDict):
    """What `seed` made."""

    seed: int
    service_id: int
    payments: int
    messages: int
    fewer: list[str]
    people: list[PersonView]


class SeedRoutes:
    """Fills a service with records to look at."""

    def __init__(self, seeding: Seeding, public_address: PublicAddress) -> None:
        self._seeding = seeding
        self._public_address = public_address

    def routes(self) -> Sequence[Route]:
        """The route of seeding."""
        return [
            Route(
                "POST", "/_sandbox/seed", self.seed,
                "fill a service with made-up people, payments and SMS",
                "Seed", (Answer(Seeded),),
                body=Body(SeedBody, optional=True), errors=(SEEDED_ALREADY,),
            ),
        ]  # fmt: skip

    async def seed(self, request: web.Request, asked: SeedBody) -> Seeded | web.Response:
        """Fill a service: `count` payments and SMS; HTTP 409 where any of them are there."""
        inbox = self._public_address(request) + _INBOX
        seeded = await self._seeding.seed(asked.seed, asked.service_id, asked.count, inbox)
        if seeded is None:
            there = f"service {asked.service_id} has what seed {asked.seed} makes already"
            hint = "reset the service or take another seed"
            return error_response(SEEDED_ALREADY, f"{there}: {hint}")
        return {
            "seed": asked.seed,
            "service_id": asked.service_id,
            "payments": seeded.payments,
            "messages": seeded.messages,
            "fewer": list(seeded.fewer),
            "people": [
                {
                    "name": person.name,
                    "customer_number": person.customer_number,
                    "nw": person.nw,
                }
                for person in seeded.sample.people
            ],
        }
