"""`sandbox-sim demo`: the gateway and a shop that pays through it, in one process."""

import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

import click
from aiohttp import web

from sandbox_sim import logs
from sandbox_sim.cli.commands.configuration import settings_options
from sandbox_sim.cli.serve.listening import (
    CODES,
    bound_sockets,
    ignore_signals,
    registered,
    run_server,
    stopped_by,
    why_not_listening,
)
from sandbox_sim.cli.serve.process import serving
from sandbox_sim.demo.catalogue import MAGIC_NUMBERS
from sandbox_sim.demo.settings import ShopSettings
from sandbox_sim.demo.shop import Shop
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.loading import Loaded
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.hosts import client_host

SHOP_PORT: Final = 8234
_SERVICE_ID: Final = 55
# The settings of a demonstration, unless the user sets others: nothing is left of it when it ends,
# callbacks have the body that the shop reads, customers type their card at the gateway, and approve
# payments on a handset.
DEMO_SETTINGS: Final = MappingProxyType(
    {
        "store": "memory:",
        "callback_profile": Profile.EVENT,
        "sandbox_card_entry": True,
        "approval": "handset",
    }
)
# Without approval on a handset: two test shoppers cancel or never answer.
_WITHOUT_HANDSET: Final = MappingProxyType({"magic_outcomes": dict(MAGIC_NUMBERS)})
# Seconds that open requests to the shop may take when it stops; the gateway stops after that, and
# both within ten seconds.
_GRACE_S: Final = 0.5


@click.command()
@settings_options("port", "store")
@click.option(
    "--shop-port",
    type=click.IntRange(0, 65535),
    default=SHOP_PORT,
    show_default=True,
    help="Port of the shop; 0 picks a free one.",
)
@click.pass_obj
def demo(obj: Mapping[str, Any], loaded: Loaded, shop_port: int) -> None:
    """Run the gateway and a shop that pays through it. By default its store is memory:."""
    settings = demo_settings(loaded)
    logs.configure(settings.log_level, settings.log_format)
    serve = _serve(settings, _client(settings), shop_port, as_json=obj["as_json"])
    raise SystemExit(run_server(settings, serve))


def demo_settings(loaded: Loaded) -> Settings:
    """The settings as for `serve`, with those of a demonstration in place of the defaults."""
    if loaded.settings.scheme != "http":
        click.echo("tls: the demo speaks plain HTTP; leave tls, cert and key out", err=True)
        raise SystemExit(1)
    by_itself = loaded.settings.approval == "auto" and "approval" in loaded.origins
    wanted = {**DEMO_SETTINGS, **(_WITHOUT_HANDSET if by_itself else {})}
    demo_only = {name: value for name, value in wanted.items() if name not in loaded.origins}
    return loaded.settings.model_copy(update=demo_only)


def _client(settings: Settings) -> Client:
    """The credentials that the shop uses: the first set of mode S."""
    for each in settings.clients().values():
        if each.mode is ServiceMode.SANDBOX:
            return each
    click.echo("credentials: the demo needs a set of mode S", err=True)
    raise SystemExit(1)


async def _serve(settings: Settings, client: Client, shop_port: int, *, as_json: bool) -> int:
    stop = stopped_by(CODES)
    at = settings.model_copy(update={"port": shop_port})
    with contextlib.ExitStack() as stack:
        try:
            sockets = [stack.enter_context(each) for each in await bound_sockets(at)]
        except OSError as error:
            text = why_not_listening(at, error).replace("--port", "--shop-port")
            click.echo(text, err=True)
            return 1
        framed = _framed_by_shop(settings, sockets[0].getsockname()[1])
        async with serving(framed) as (_, port), _open_shop(at, client, port, sockets) as url:
            stack.enter_context(registered(settings, port))
            _show_ready(settings, port, url, as_json=as_json)
            code = await stop
    ignore_signals()
    return code


@asynccontextmanager
async def _open_shop(
    settings: Settings, client: Client, gateway_port: int, sockets: Sequence[socket.socket]
) -> AsyncIterator[str]:
    """Serve the shop; yields its URL."""
    url = _url(settings, sockets[0].getsockname()[1])
    gateway_url = _url(settings, gateway_port)
    seen_at = settings.public_url or gateway_url
    pages = dict.fromkeys(filter(None, map(_origin, (gateway_url, settings.public_url))))
    shop = Shop(
        ShopSettings(
            url=url,
            gateway_url=gateway_url,
            client_key=client.client_key,
            secret_key=client.secret_key,
            service_id=min(client.service_ids, default=_SERVICE_ID),
            payment_pages=tuple(pages),
            dashboard=f"{seen_at}/_sandbox/",
            asks_on_handset=settings.approval == "handset",
            magic_numbers=settings.magic_outcomes.items() >= MAGIC_NUMBERS.items(),
        )
    )
    runner = web.AppRunner(shop.app, access_log=None, shutdown_timeout=_GRACE_S)
    try:
        await runner.setup()
        for each in sockets:
            await web.SockSite(runner, each).start()
        yield url
    finally:
        await runner.cleanup()


def _framed_by_shop(settings: Settings, shop_port: int) -> Settings:
    """The settings of the gateway, whose pages the screen of the shop may show in frames."""
    shop = (f"localhost:{shop_port}", str(client_host(settings.host, shop_port)))
    return settings.model_copy(update={"allowed_hosts": [*settings.allowed_hosts, *shop]})


def _url(settings: Settings, port: int) -> str:
    return f"http://{client_host(settings.host, port)}"


def _origin(url: str | None) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _show_ready(settings: Settings, port: int, shop_url: str, *, as_json: bool) -> None:
    url = _url(settings, port)
    if as_json:
        pid = os.getpid()
        click.echo(json.dumps({"url": url, "shop_url": shop_url, "port": port, "pid": pid}))
        return
    click.echo(f"sandbox-sim ready at {url}")
    click.echo(f"  shop, phone and timeline on one screen: {shop_url}/screen")
    click.echo(f"  shop: {shop_url}")
    click.echo(f"  back office of the shop: {shop_url}/office")
    click.echo(f"  state of the gateway: {settings.shown_store}")
