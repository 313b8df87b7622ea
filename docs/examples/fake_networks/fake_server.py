"""Serves a fake network on 127.0.0.1, which decides each payment a moment after it came."""

import asyncio

from aiohttp import ClientError, ClientSession, web

UNTIL_DECIDED_S = 0.2


async def serve(fake, name, port):
    """Serve until the process ends.

    fake: has `payments` by reference, `answer` for a request, and `decide`, which returns the
    notification of a payment or None.
    """
    deciding = set()

    async def decide(reference):
        await asyncio.sleep(UNTIL_DECIDED_S)
        notification = fake.decide(reference)
        if notification is None:
            return
        url, headers, body = notification
        try:
            async with ClientSession() as session, session.post(url, headers=headers, data=body):
                pass
        except (ClientError, TimeoutError) as error:
            print(f"the notification was not accepted: {error}", flush=True)

    async def handle(request):
        before, body = set(fake.payments), await request.read()
        status, document = fake.answer(request.method, request.raw_path, request.headers, body)
        for reference in fake.payments.keys() - before:
            deciding.add(asyncio.create_task(decide(reference)))
        return web.json_response(document, status=status)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print(f"{name} ready at http://127.0.0.1:{port}", flush=True)
    await asyncio.Event().wait()
