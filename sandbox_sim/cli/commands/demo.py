"""`sandbox-sim demo`: the gateway and a shop that pays through it, in one process."""

import contextlib
import io
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import click
from aiohttp import web
from pydantic import SecretStr

from sandbox_sim import logs
from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.cli.client import CommandFailed
from sandbox_sim.cli.commands.configuration import settings_options
from sandbox_sim.cli.options import Integer
from sandbox_sim.cli.serve.listening import (
    EXIT_CODES,
    bound_sockets,
    ignore_signals,
    registered,
    run_server,
    stop_on_signal,
    why_not_listening,
)
from sandbox_sim.cli.serve.process import serving
from sandbox_sim.demo.catalogue import MAGIC_NUMBERS
from sandbox_sim.demo.gateway_client import CALLBACK_PATH, ShopSettings
from sandbox_sim.demo.shop import Shop
from sandbox_sim.demo.texts import ENGLISH
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.loading import LoadedSettings
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.hosts import WILDCARD_ADDRESSES, client_host, is_loopback

SHOP_PORT: Final = 8234
_SERVICE_ID: Final = 55
# The defaults of the demonstration: its records are in memory only, callbacks have the body that
# the shop reads, customers type their card at the gateway, and approve payments on a handset, which
# names the shop.
DEMO_SETTINGS: Final[Mapping[str, object]] = {
    "store": "memory:",
    "callback_profile": Profile.EVENT,
    "sandbox_card_entry": True,
    "approval": "handset",
    "merchant_names": {str(_SERVICE_ID): ENGLISH.shop},
}
# The default without approval on a handset: two of the test shoppers cancel or never answer.
_WITHOUT_HANDSET: Final = {"magic_outcomes": dict(MAGIC_NUMBERS)}
# Seconds that open requests to the shop get when it stops. The gateway stops after the shop; both
# must stop within ten seconds.
_GRACE_S: Final = 0.5
# An address that no machine has (RFC 5737): it has the route to other networks.
_OTHER_NETWORK: Final = "203.0.113.1"


@click.command()
@settings_options("port", "store", store=str(DEMO_SETTINGS["store"]))
@click.option(
    "--shop-port",
    type=Integer(0, 65535),
    default=SHOP_PORT,
    help="Port of the shop; 0 picks a free one.",
)
@click.option(
    "--lan", is_flag=True, help="Serve the local network and print a QR code for a real phone."
)
@click.pass_obj
def demo(obj: Mapping[str, Any], loaded: LoadedSettings, shop_port: int, *, lan: bool) -> None:
    """Run the gateway and a shop that pays through it. By default, records are in memory only."""
    settings = demo_settings(loaded)
    if lan:
        settings = settings_in_lan(settings, lan_address())
    logs.configure(settings.log_level, settings.log_format)
    ready = DemoReady(settings, as_json=obj["as_json"], lan=lan)
    raise SystemExit(run_server(settings, _serve(settings, _client(settings), shop_port, ready)))


def demo_settings(loaded: LoadedSettings) -> Settings:
    """The settings of the user; those that are not set get the defaults of the demonstration.

    Raises `CommandFailed` for TLS and production.
    """
    if loaded.settings.production:
        raise CommandFailed("production: the demo is for the sandbox; leave out production")
    if loaded.settings.scheme != "http":
        raise CommandFailed("tls: the demo serves plain HTTP; leave out tls, cert and key")
    approves_at_once = loaded.settings.approval == "auto" and "approval" in loaded.origins
    defaults = {**DEMO_SETTINGS, **(_WITHOUT_HANDSET if approves_at_once else {})}
    demo_only = {name: value for name, value in defaults.items() if name not in loaded.origins}
    return loaded.settings.model_copy(update=demo_only)


def lan_address() -> str | None:
    """The address of this machine in its network; None if it has none. Sends no packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_OTHER_NETWORK, 9))  # only chooses a route
            found = str(probe.getsockname()[0])
        except OSError:
            return None
    return None if is_loopback(found) else found


def settings_in_lan(settings: Settings, address: str | None) -> Settings:
    """The settings with this address as host, and a random control token if none is set.

    Raises `CommandFailed` if the address is None and no host is set.
    """
    needs_address = settings.loopback or settings.host in WILDCARD_ADDRESSES
    host = address if needs_address else settings.host
    if host is None:
        text = "--lan: the address of this machine in its network is not known"
        example = "--set host=192.168.1.5 --set control_token=SECRET"
        raise CommandFailed(f"{text}; name it: {example}")
    token = settings.control_token if settings.token else SecretStr(RandomIds().token())
    return settings.model_copy(update={"host": host, "control_token": token})


def _client(settings: Settings) -> Client:
    """The credentials of the shop: the first set of mode S. Raises `CommandFailed`."""
    for each in settings.clients().values():
        if each.mode is ServiceMode.SANDBOX:
            return each
    raise CommandFailed("credentials: the demo needs a set of mode S")


async def _serve(settings: Settings, client: Client, shop_port: int, ready: "DemoReady") -> int:
    stop = stop_on_signal(EXIT_CODES)
    shop_settings = settings.model_copy(update={"port": shop_port})
    with contextlib.ExitStack() as stack:
        try:
            sockets = [stack.enter_context(each) for each in await bound_sockets(shop_settings)]
        except OSError as error:
            text = why_not_listening(shop_settings, error).replace("--port", "--shop-port")
            click.echo(text, err=True)
            return 1
        gateway_settings = _beside_shop(settings, sockets[0].getsockname()[1])
        async with (
            serving(gateway_settings) as (gateway, port),
            _open_shop(shop_settings, client, port, sockets) as url,
        ):
            stack.enter_context(registered(settings, port))
            invite = partial(gateway.control.invitations.add, gateway.ids.token())
            ready.show(port, url, invite)
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
    public = urlsplit(settings.public_url or gateway_url)
    pages = dict.fromkeys((gateway_url, f"{public.scheme}://{public.netloc}"))
    shop = Shop(
        ShopSettings(
            url=url,
            gateway_url=gateway_url,
            client_key=client.client_key,
            secret_key=client.secret_key,
            service_id=min(client.service_ids, default=_SERVICE_ID),
            payment_pages=tuple(pages),
            dashboard=f"{seen_at}/_sandbox/",
            approval_on_handset=settings.approval == "handset",
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


def _beside_shop(settings: Settings, shop_port: int) -> Settings:
    """The settings of the gateway: the shop may frame its pages, and can read its callbacks."""
    shop = (f"localhost:{shop_port}", str(client_host(settings.host, shop_port)))
    profiles = {f"*{CALLBACK_PATH}": Profile.EVENT, **settings.callback_profiles}
    allowed = [*settings.allowed_hosts, *shop]
    return settings.model_copy(update={"allowed_hosts": allowed, "callback_profiles": profiles})


def _url(settings: Settings, port: int) -> str:
    return f"http://{client_host(settings.host, port)}"


class DemoReady(NamedTuple):
    """The message that the demonstration is ready. lan: whether it has a link for phones."""

    settings: Settings
    as_json: bool
    lan: bool

    def show(self, port: int, shop_url: str, invite: Callable[[str], str]) -> None:
        """Print the addresses.

        invite: returns the path of a link that logs in and then redirects to the given address.
        """
        url = _url(self.settings, port)
        phone_url = url + invite(f"{shop_url}/screen") if self.lan else None
        if self.as_json:
            ready = {"url": url, "shop_url": shop_url, "port": port, "pid": os.getpid()}
            click.echo(json.dumps(ready | ({"phone_url": phone_url} if phone_url else {})))
            return
        click.echo(f"sandbox-sim ready at {url}")
        if phone_url:
            click.echo(
                "  scan this with a phone in the same network to open shop, phone and timeline:"
            )
            with contextlib.suppress(UnicodeEncodeError):  # a terminal without half blocks
                click.echo(terminal_qr_code(phone_url))
            click.echo(f"  or open {phone_url}")
            click.echo("  the link works for everyone in the network until the demonstration ends")
        click.echo(f"  shop, phone and timeline on one screen: {shop_url}/screen")
        click.echo(f"  shop: {shop_url}")
        click.echo(f"  back office of the shop: {shop_url}/office")
        click.echo(f"  state of the gateway: {self.settings.shown_store}")


def terminal_qr_code(text: str) -> str:
    """A QR code for a terminal, drawn with half blocks."""
    import segno  # noqa: PLC0415 -- needed only with --lan

    drawn = io.StringIO()
    segno.make(text, micro=False, error="l").terminal(drawn, border=2, compact=True)
    return drawn.getvalue()
