"""`sandbox-sim readyz`, for containers and scripts."""

import json

import click

from sandbox_sim.cli.client import Gateway, Unreachable

_PATH = "/_sandbox/readyz"
_TIMEOUT_S = 5.0


def run(endpoint_url: str, *, as_json: bool) -> int:
    """Return the exit code: 0 if the gateway is ready, else 1."""
    gateway = Gateway(endpoint_url)
    try:
        status = gateway.send("GET", _PATH, {}, timeout_s=_TIMEOUT_S).status
        problem = None if status == 200 else f"HTTP {status}"
    except Unreachable as error:
        problem = error.reason
    if problem is not None:
        click.echo(f"not ready: {gateway.address}{_PATH}: {problem}", err=True)
        return 1
    click.echo(json.dumps({"status": "ready"}) if as_json else "ready")
    return 0
