"""The answer to a `wait`, which ends early when the client closes the connection."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiohttp import web

from sandbox_sim.gateway.control.wait_for_records import Came
from sandbox_sim.web.control.errors import DISCONNECTED, TIMEOUT, error_response
from sandbox_sim.web.control.handlers import Reply
from sandbox_sim.web.control.input_models import Wait
from sandbox_sim.web.transport.disconnection import DisconnectProtocol


async def answer_of_wait(
    request: web.Request, waiting: Coroutine[Any, Any, Came], asked: Wait, plural: str
) -> Reply:
    """Wait for the records; HTTP 408 where too few came in time.

    The wait ends at once when the client closes the connection.
    """
    task = asyncio.create_task(waiting)
    protocol = request.protocol
    if isinstance(protocol, DisconnectProtocol):
        protocol.cancel_when_disconnected(task)
    try:
        await asyncio.wait({task})
    finally:
        task.cancel()  # where this handler itself is cancelled
    if task.cancelled():
        return error_response(DISCONNECTED, "The client closed the connection")
    came = task.result()
    if came.records is None:
        text = f"{came.matching} of {asked.count} came within {asked.timeout_s:g} s"
        return error_response(TIMEOUT, text)
    return {plural: came.records}
