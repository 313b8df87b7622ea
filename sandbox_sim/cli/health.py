"""`sandbox-sim readyz`, for containers and scripts."""

import http.client
import urllib.request

import click


def run(endpoint_url: str) -> int:
    """Exit code 0 if the gateway is ready."""
    url = f"{endpoint_url.rstrip('/')}/_sandbox/readyz"
    if not url.startswith(("http://", "https://")):
        click.echo(f"--endpoint-url {endpoint_url} is no http address", err=True)
        return 2
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 -- http or https, see above
            pass
    except (OSError, http.client.HTTPException, ValueError) as error:
        click.echo(f"not ready: {url}: {getattr(error, 'reason', error)}", err=True)
        return 1
    click.echo("ready")
    return 0
