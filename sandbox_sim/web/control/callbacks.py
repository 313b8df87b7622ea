"""Callbacks under `/_sandbox/`: the next attempt now, resending, and the check of a receiver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

from aiohttp import web
from pydantic import Field

from sandbox_sim.callbacks.doctor import ReceiverExamination
from sandbox_sim.callbacks.receiver_checks import ReceiverReport, shown
from sandbox_sim.control.manual_actions import CallbackRetries, ManualActions
from sandbox_sim.control.record_search import RecordIds
from sandbox_sim.http_addresses import EXPECTED
from sandbox_sim.records import callbacks
from sandbox_sim.records.callbacks import CallbackView, Profile
from sandbox_sim.web.api.request_models import WebAddress
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.errors import RequestRefused
from sandbox_sim.web.control.input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    BadInput,
    Input,
    Nothing,
    ServiceBody,
)
from sandbox_sim.web.control.records import not_found, require_found
from sandbox_sim.web.routes import ListOf, Reply, RouteGroup, route


class ResendBody(Input):
    """The body of `resend`; without `url` the callback goes to the same address as before."""

    url: WebAddress | None = Field(None, description=EXPECTED)


DOCTOR_PATH: Final = "/_sandbox/doctor"


class DoctorBody(Input):
    """The body of `doctor`: the receiver, the service that signs, and the profiles to send.

    The receiver is that of an address, or of a callback: a callback shows no secret of its address.

    url: the receiver.
    service_id: the service whose credentials of mode S sign the samples.
    profiles: the forms of the body to send; by default all.
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
    """The report."""

    complete: Annotated[bool, "false where the time was over before all checks were made"]


@dataclass(frozen=True, eq=False)
class CallbackActionRoutes(RouteGroup):
    """Retries and resends callbacks, and examines receivers.

    examination: makes the examination when it is needed, so that serve starts faster.
    """

    retries: CallbackRetries
    manual_actions: ManualActions
    ids: RecordIds
    examination: Callable[[], ReceiverExamination]

    group = "Callbacks"

    @route("POST /_sandbox/callbacks/retry", "make the next attempt at every retrying callback now",
           answer=ListOf("callbacks", CallbackView, has_next=False),
           status=202, optional=True)  # fmt: skip
    async def retry_all(self, _request: web.Request, body: ServiceBody) -> Reply:
        """Make the next attempt at every retrying callback now; answer with these callbacks."""
        retried = await self.retries.retry_all(body.service_id)
        return {"callbacks": [*map(callbacks.shown, retried)]}

    @route("POST /_sandbox/callbacks/{id}/retry", "make the next attempt at a callback now",
           status=202, optional=True, errors=(errors.AMBIGUOUS, errors.NOT_WAITING))  # fmt: skip
    async def retry(self, request: web.Request, _body: Nothing) -> CallbackView:
        """Make the next attempt now; HTTP 409 if the callback is not waiting for an attempt."""
        name = request.match_info["id"]
        retried = require_found(await self.retries.retry(name), "callbacks", name)
        if not retried.was_waiting:
            text = f"callback {retried.callback.id} is {retried.callback.state}, so no attempt is"
            text += " due: resend sends it once more"
            raise RequestRefused(errors.NOT_WAITING, text)
        return callbacks.shown(retried.callback)

    @route("POST /_sandbox/callbacks/{id}/resend", "send a callback once more, now", status=202,
           optional=True, errors=(errors.AMBIGUOUS,))  # fmt: skip
    async def resend(self, request: web.Request, body: ResendBody) -> CallbackView:
        """Send a callback once more, now; its attempts show the result."""
        name = request.match_info["id"]
        found = require_found(await self.ids.callback(name), "callbacks", name)
        resent = await self.manual_actions.resend(str(found["id"]), body.url)
        return callbacks.shown(require_found(resent, "callbacks", name))

    @route(f"POST {DOCTOR_PATH}", "send a receiver sample callbacks, and say what it does wrong",
           errors=(errors.NOT_FOUND, errors.AMBIGUOUS, errors.PRODUCTION,
                   errors.NO_CREDENTIALS))  # fmt: skip
    async def examine(self, _request: web.Request, body: DoctorBody) -> DoctorReport:
        """Examine a receiver; answer when all samples were answered, or the time limit is over."""
        if (body.url is None) == (body.callback is None):
            raise BadInput("exactly one of url and callback must be set")
        examination = self.examination()
        url, service_id = body.url or "", body.service_id
        if body.callback is not None:
            found = await self.ids.callback(body.callback)
            receiver = found and await examination.address_of(str(found["id"]))
            if not receiver:
                raise not_found("callbacks", body.callback)
            url, service_id = receiver.url, service_id or receiver.service_id
        examined = await examination.examine(url, service_id, body.profiles or ())
        if examined is None:
            text = f"no credentials of mode S are for service_id {service_id}"
            raise RequestRefused(errors.NO_CREDENTIALS, text)
        report = shown(examined.receiver, examined.signed_with, examined.findings)
        return {**report, "complete": examined.complete}
