"""`sandbox-sim serve`: reads the settings, prints the ready lines and runs the gateway."""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from sandbox_sim import gc_disabled, logs
from sandbox_sim.adapters.tls import TlsError
from sandbox_sim.bootstrap import tls_context
from sandbox_sim.cli.commands.configuration import settings_options
from sandbox_sim.cli.serve.listening import registered, run_server
from sandbox_sim.settings.loading import LoadedSettings
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import SANDBOX_CLIENT
from sandbox_sim.values.hosts import client_host

MOST_NEED_LENIENT = (
    "most clients need --lenient: it adds the callback fields they read, and accepts 233 numbers"
)

log = logging.getLogger("sandbox_sim.serve")


@click.command()
@settings_options(
    *("host", "port", "store", "production", "cert", "key", "tls", "workers"),
    *("quiet", "log_level", "log_format", "lenient"),
)
@click.pass_obj
def serve(obj: Mapping[str, Any], loaded: LoadedSettings) -> None:
    """Run the gateway."""
    with gc_disabled():  # a running gateway turns it on again
        raise SystemExit(_run(loaded.settings, as_json=obj["as_json"]))


def _run(settings: Settings, *, as_json: bool) -> int:
    """Serve until a signal arrives; return the exit code."""
    logs.configure(settings.log_level, settings.log_format)
    _warn_about_plain_http(settings)
    try:
        tls_context(settings)  # also here, so that an error is reported once, not by each worker
    except (TlsError, OSError) as error:
        click.echo(f"tls: {error}", err=True)
        return 1
    if settings.workers == 1:
        from sandbox_sim.cli.serve.process import serve_alone as run  # noqa: PLC0415
    else:
        from sandbox_sim.cli.serve.workers import supervise as run  # noqa: PLC0415
    with contextlib.ExitStack() as running:

        def ready(port: int) -> None:
            running.enter_context(registered(settings, port))
            _announce(settings, port, as_json=as_json)

        return run_server(settings, run(settings, ready))


def _announce(settings: Settings, port: int, *, as_json: bool) -> None:
    """Print the ready lines on stdout. A closed stdout is only logged."""
    try:
        _print_ready(settings, port, as_json=as_json)
    except OSError as error:
        log.warning("stdout cannot be written to: %s", error.strerror)
        sys.stdout = None  # otherwise the flush at exit fails


def _print_ready(settings: Settings, port: int, *, as_json: bool) -> None:
    """Print the ready line and the lines below it, or with --json one object."""
    host = client_host(settings.host, port)
    url = f"{settings.scheme}://{host}"
    authority = settings.trusted if settings.tls else None
    values = settings.model_dump(mode="json", include=set(settings.turned_on_by_lenient))
    turned_on = [f"{name} = {json.dumps(value)}" for name, value in values.items()]  # D34
    if as_json:
        ready = {"url": url, "port": port, "pid": os.getpid()}
        lenient = {"lenient": turned_on} if settings.lenient else {}
        trusted = {} if authority is None else {"authority": str(authority)}
        click.echo(json.dumps({**ready, **lenient, **trusted}))
    else:
        first = settings.credentials[0].client()
        lenient_note = f" (lenient: {', '.join(turned_on)})" if settings.lenient else ""
        click.echo(f"sandbox-sim ready at {url}{lenient_note}")
        if authority is not None:
            click.echo(f"  certificate authority: {authority}")
        if host.name != settings.host:
            click.echo(f"  from other machines: any address of this machine, port {port}")
        click.echo(f"  dashboard: {url}/")
        click.echo(f"  received callbacks: {url}/_sandbox/inbox/<name>/messages")
        if first == SANDBOX_CLIENT:
            pair = f"{first.client_key}:{first.secret_key}"
            click.echo(f"  credentials: {pair} (Basic), any service_id")
        else:
            keys = ", ".join(each.client_key for each in settings.credentials)
            click.echo(f"  credentials: {keys} (Basic), each with its configured secret_key")
        click.echo(f"  state: {settings.shown_store}")
        if not settings.lenient and "callback_profile" not in settings.model_fields_set:
            click.echo(f"  {MOST_NEED_LENIENT}")


def _warn_about_plain_http(settings: Settings) -> None:
    """Warn if clients must send credentials over plain HTTP (auth.5, D2)."""
    if not settings.loopback and not settings.is_secured:
        click.echo(
            f"warning: {settings.shown_host} is not loopback and this is plain HTTP; send "
            "credentials over HTTPS only (use --tls, or --cert and --key, or set tls_terminated if "
            "a proxy handles HTTPS)",
            err=True,
        )
