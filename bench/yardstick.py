"""The yardstick: a bare aiohttp handler that checks Basic auth, parses JSON, answers a fixed 202.

With an address as argument it also makes one bare ClientSession POST there for each request; a
refused connection is not an error.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import orjson
from aiohttp import ClientConnectionError, ClientSession, web

from bench.requests import AUTHORIZATION

ANSWER = orjson.dumps(
    {"response_message": "Request successfully received for processing", "response_code": "202"}
)
CALLBACK = orjson.dumps({"trans_ref": "T1", "trans_status": "000/SUCCESS", "amount": "10.5"})
SESSION = web.AppKey("session", ClientSession)


async def answer(request: web.Request) -> web.Response:
    if request.headers.get("Authorization") != AUTHORIZATION:
        return web.Response(status=401)
    orjson.loads(await request.read())
    return web.Response(body=ANSWER, status=202, content_type="application/json")


def posting(address: str) -> web.Application:
    async def answer_and_post(request: web.Request) -> web.Response:
        with suppress(ClientConnectionError):
            async with request.app[SESSION].post(address, data=CALLBACK) as response:
                await response.read()
        return await answer(request)

    async def session(app: web.Application) -> AsyncIterator[None]:
        async with ClientSession() as app[SESSION]:
            yield

    app = web.Application()
    app.router.add_post("/make_payment", answer_and_post)
    app.cleanup_ctx.append(session)
    return app


def bare() -> web.Application:
    app = web.Application()
    app.router.add_post("/make_payment", answer)
    return app


if __name__ == "__main__":
    web.run_app(
        posting(sys.argv[2]) if len(sys.argv) > 2 else bare(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=None,
        print=lambda _: print("ready", flush=True),
    )
