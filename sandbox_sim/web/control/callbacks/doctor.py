"""`POST /_sandbox/doctor`: examines a receiver of callbacks. Source: docs/control-api.md."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.gateway.callbacks.receiver_report import ReceiverReport, shown
from sandbox_sim.gateway.control.record_ids import RecordIds
from sandbox_sim.http_addresses import EXPECTED
from sandbox_sim.web.api.address_fields import WebAddress
from sandbox_sim.web.control.errors import (
    AMBIGUOUS,
    NO_CREDENTIALS,
    NOT_FOUND,
    PRODUCTION,
    error_response,
)
from sandbox_sim.web.control.input_models import LARGEST_INTEGER, SERVICE_ID, Input
from sandbox_sim.web.control.input_parsing import BadInput
from sandbox_sim.web.control.records import no_such
from sandbox_sim.web.routes import Answer, Body, Route

if TYPE_CHECKING:
    from sandbox_sim.gateway.callbacks.receiver_examination import ReceiverExamination

DOCTOR: Final = "/_sandbox/doctor"


class DoctorBody(Input):
    """The body of `doctor`: the receiver, the service that signs, and the profiles to send.

    The receiver is that of an address, or of a callback: a callback shows no secret of its address.
    """

    url: WebAddress | None = Field(None, description=EXPECTED)
    callback: str | None = Field(
        None, min_length=1, max_length=400, description="the id of a callback, in place of url"
    )
    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    profiles: list[Profile] | None = Field(
        None, min_length=1, description=f"a list of {', '.join(Profile)}"
    )


class DoctorReport(ReceiverReport):
    """The report. complete: false where the time was over before all checks were made."""

    complete: bool


class DoctorRoutes:
    """Sends a receiver the samples of the doctor.

    examination: makes what sends them, when it is asked for: serve starts without it.
    """

    def __init__(self, ids: RecordIds, examination: Callable[[], "ReceiverExamination"]) -> None:
        self._ids = ids
        self._examination = examination

    def routes(self) -> Sequence[Route]:
        """The route of the doctor."""
        return [
            Route(
                "POST", DOCTOR, self.examine,
                "send a receiver sample callbacks, and say what it does wrong",
                "Callbacks", (Answer(DoctorReport),), body=Body(DoctorBody),
                errors=(NOT_FOUND, AMBIGUOUS, PRODUCTION, NO_CREDENTIALS),
            ),
        ]  # fmt: skip

    async def examine(
        self, _request: web.Request, asked: DoctorBody
    ) -> DoctorReport | web.Response:
        """Examine a receiver; answers when all samples were answered, or their time is over."""
        if (asked.url is None) == (asked.callback is None):
            raise BadInput("url or callback must be there, and not both")
        examination = self._examination()
        url, service_id = asked.url or "", asked.service_id
        if asked.callback is not None:
            found = await self._ids.callback(asked.callback)
            receiver = found and await examination.receiver_of(str(found["id"]))
            if not receiver:
                return no_such("callbacks", asked.callback)
            url, service_id = receiver.url, service_id or receiver.service_id
        examined = await examination.examine(url, service_id, asked.profiles or ())
        if examined is None:
            text = f"no credentials of mode S are for service_id {service_id}"
            return error_response(NO_CREDENTIALS, text)
        report = shown(examined.receiver, examined.owner, examined.findings)
        return {**report, "complete": examined.complete}
