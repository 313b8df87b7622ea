"""Connections that fail because descriptors are short cause one line of the log a second."""

import asyncio
import errno
import logging

import pytest

from sandbox_sim.cli.serve.process import _AcceptErrors


async def test_many_of_them_are_one_line_and_another_error_is_reported_as_ever(
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
