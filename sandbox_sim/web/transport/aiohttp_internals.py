"""The internals of aiohttp that the web layer and the callback sender use, and their purpose.

aiohttp may change them in any minor version, so `pyproject.toml` bounds its version and the server
checks each name when it starts; see `server.py`:

- `FAST_CONNECTION`: without them aiohttp's protocol, as `gateway_protocol.py` extends it, serves
  every connection.
- `REQUIRED`: for that protocol and its requests, and for callbacks. Without them the server does
  not start.
"""

import asyncio
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, NamedTuple

from aiohttp import web

_SERVER: Final = "aiohttp.web:Server"


class Internal(NamedTuple):
    """Names of one module or class that are used. holder: its import path, `module:Class`."""

    holder: str
    names: tuple[str, ...]
    purpose: str


FAST_CONNECTION: Final = (
    Internal("aiohttp.base_protocol:BaseProtocol", ("_loop",), "creates the task of an answer"),
    Internal("aiohttp.base_protocol:BaseProtocol", ("_parser",), "the parser of the connection"),
    Internal(
        "aiohttp.base_protocol:BaseProtocol",
        ("_paused",),
        "whether the client reads its answers too slowly",
    ),
    Internal(
        "aiohttp.base_protocol:BaseProtocol",
        ("_pause_transport_reading", "_resume_transport_reading"),
        "stops reading while a request is being answered",
    ),
    Internal("aiohttp.http:HttpRequestParser", ("feed_data",), "parses bytes into requests"),
    Internal(
        "aiohttp.http:RawRequestMessage",
        (
            *("path", "headers", "method", "version"),
            *("should_close", "chunked", "upgrade"),
        ),
        "the head of a request, as the parser gives it",
    ),
    Internal("aiohttp.streams:StreamReader", ("is_eof", "total_bytes"), "whether a body is whole"),
    Internal("aiohttp.tcp_helpers", ("tcp_keepalive",), "sets SO_KEEPALIVE on the socket"),
)

REQUIRED: Final = (
    Internal(
        "aiohttp.web:RequestHandler",
        ("_messages", "_request_count", "_waiter"),
        "which whole requests wait for an answer when a client ends its side",
    ),
    Internal(
        "aiohttp.web:RequestHandler",
        ("_max_msg_queue_size",),
        "how many requests wait for an answer before it stops reading",
    ),
    Internal("aiohttp.web_protocol", ("_ErrInfo",), "refuses a request of HTTP/0.9"),
    Internal("aiohttp.streams", ("EMPTY_PAYLOAD",), "the body of such a request"),
    Internal("aiohttp.http", ("HttpVersion10",), "which versions of HTTP are refused"),
    Internal("aiohttp.http_exceptions", ("BadHttpMessage",), "why such a request is refused"),
    Internal(
        "aiohttp.http:RawRequestMessage",
        ("_replace",),
        "closes the connection after the last of these requests",
    ),
    Internal(
        "aiohttp.web:RequestHandler",
        ("_request_in_progress",),
        "which connections are idle and may be closed to make room",
    ),
    Internal(
        "aiohttp.web:RequestHandler",
        ("handle_error", "log_exception"),
        "answers requests that cannot be parsed, in the format of the interface",
    ),
    Internal(
        _SERVER,
        ("_kwargs", "_loop", "request_factory"),
        "what a server of ours has to be created with",
    ),
    Internal(
        "aiohttp.web:AppRunner", ("_kwargs", "_server"), "puts our server in place of aiohttp's"
    ),
    Internal(_SERVER, ("request_handler",), "gives requests to the dispatcher"),
    Internal("aiohttp.web:Request", ("_match_info",), "the route of the control API, for handlers"),
    Internal(
        "aiohttp.web:RequestHandler",
        ("finish_response",),
        "accepts a `GatewayAnswer` as a response: it uses only prepare, write_eof and keep_alive",
    ),
    Internal("aiohttp.web:BaseRequest", ("writer",), "where an answer is written"),
    Internal("aiohttp.http:StreamWriter", ("write_eof", "output_size"), "writes an answer"),
    Internal("aiohttp.helpers", ("rfc822_formatted_time",), "the header Date, once a second"),
    Internal("aiohttp.http_exceptions", ("HttpProcessingError",), "a body with bad chunks"),
    Internal("aiohttp:TCPConnector", ("connect",), "a connection for a callback"),
    Internal(
        "aiohttp.connector:Connection",
        ("protocol", "close", "release"),
        "keeps that connection for the next callback, or closes it",
    ),
    Internal(
        "aiohttp.client_proto:ResponseHandler",
        ("set_response_params", "read"),
        "reads the answer to a callback there",
    ),
    Internal("aiohttp.http_writer", ("_serialize_headers",), "writes the head of a callback"),
)

_SAMPLE: Final = b"POST /a HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}"


def missing_names(internals: Iterable[Internal], server: web.Server | None) -> list[str]:
    """The full names of those that are missing.

    server: any server of aiohttp; a `Server` sets its attributes only on the instance.
    """
    missing = []
    for path, names, _ in internals:
        holder = server if path == _SERVER else _import(path)
        missing += [f"{path}.{name}" for name in names if not hasattr(holder, name)]
    return missing


def parser_works(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the parser reads a sample request as `fast_connection.py` expects.

    The check of names does not notice that an argument or a result has changed.
    """
    http, base = import_module("aiohttp.http"), import_module("aiohttp.base_protocol")
    try:
        parser: Any = http.HttpRequestParser(
            protocol=base.BaseProtocol(loop, None),
            loop=loop,
            limit=1024,
            max_line_size=1024,
            max_field_size=1024,
            auto_decompress=False,
        )
        ((head, body),), _upgraded, _tail = parser.feed_data(_SAMPLE)
        read = (head.path, head.method, body.total_bytes, body.is_eof())
    except Exception:  # any exception means that the parser has changed
        return False
    return read == ("/a", "POST", 2, True)


def _import(path: str) -> object:
    """The module or class at this import path, or None."""
    module_name, _, name = path.partition(":")
    try:
        module = import_module(module_name)
    except ImportError:
        return None
    return getattr(module, name, None) if name else module
