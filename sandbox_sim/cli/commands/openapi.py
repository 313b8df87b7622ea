"""`sandbox-sim openapi`: the OpenAPI document, without a running gateway."""

import json

import click


@click.command()
def openapi() -> None:
    """Print the OpenAPI document of all paths.

    No gateway has to run. A running one serves its own at /_sandbox/openapi.json.
    """
    from sandbox_sim.bootstrap import build  # noqa: PLC0415 -- --help loads every command
    from sandbox_sim.config import Settings  # noqa: PLC0415
    from sandbox_sim.web.app import ROUTES  # noqa: PLC0415
    from sandbox_sim.web.openapi.document import openapi_document  # noqa: PLC0415
    from sandbox_sim.web.openapi.routes import ServerFacts  # noqa: PLC0415

    table = build(Settings(store="memory:")).app[ROUTES]()
    click.echo(json.dumps(openapi_document(table, ServerFacts()), indent=2))
