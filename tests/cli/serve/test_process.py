"""Connections that cannot be accepted, because descriptors run out, log one line a second."""

import asyncio
import errno
import logging

import pytest

from sandbox_sim.cli.serve.process import _AcceptErrors


async def test_repeated_accept_errors_are_one_line_and_other_errors_are_still_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handle, loop = _AcceptErrors(), asyncio.get_running_loop()
    message = "socket.accept() out of system resource"
    context = {"message": message, "exception": OSError(errno.EMFILE, "Too many open files")}

    for _ in range(200):
        handle(loop, context)
    caplog.set_level(logging.ERROR, "asyncio")
    handle(loop, {"message": "Task exception was never retrieved"})

    assert caplog.messages == [
        "connections cannot be accepted: [Errno 24] Too many open files",
        "Task exception was never retrieved",
    ]
