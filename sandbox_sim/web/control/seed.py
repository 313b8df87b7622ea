"""Made-up people under `/_sandbox/seed`. Source: docs/control-api.md."""

from aiohttp import web
from pydantic import Field

from sandbox_sim.gateway.control.seeding import Seeding
from sandbox_sim.web.control.control_input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Guard,
    Input,
    Routes,
    body_of,
    error,
)
from sandbox_sim.web.public_address import OurAddress

MOST = 1000
# Where the callbacks of payments go that are still pending.
_INBOX = "/_sandbox/inbox/seed"


class SeedBody(Input):
    """What `seed` takes, or nothing."""

    seed: int = Field(
        42, ge=0, le=LARGEST_INTEGER, description=f"an integer from 0 to {LARGEST_INTEGER}"
    )
    count: int = Field(20, ge=1, le=MOST, description=f"an integer from 1 to {MOST}")
    service_id: int = Field(55, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class SeedRoutes:
    """Something to look at, for whoever holds the control token."""

    def __init__(self, seeding: Seeding, our_address: OurAddress, guard: Guard) -> None:
        self._seeding = seeding
        self._our_address = our_address
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        return [("POST", "/_sandbox/seed", self._guard(self.seed))]

    async def seed(self, request: web.Request) -> web.Response:
        """Fill a service: `count` payments and SMS; HTTP 409 where any of them are there."""
        asked = await body_of(request, SeedBody, optional=True)
        inbox = self._our_address(request) + _INBOX
        seeded = await self._seeding.seed(asked.seed, asked.service_id, asked.count, inbox)
        if seeded is None:
            there = f"service {asked.service_id} has what seed {asked.seed} makes already"
            return error(409, "seeded_already", f"{there}: reset the service or take another seed")
        return web.json_response(
            {
                "seed": asked.seed,
                "service_id": asked.service_id,
                "payments": seeded.payments,
                "messages": seeded.messages,
                "people": [person._asdict() for person in seeded.sample.people],
            }
        )
