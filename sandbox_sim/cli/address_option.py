"""The value of an option or argument that is an address for callbacks. Source: D37."""

from typing import Final

import click

# Longer addresses are cut in the error message.
_SHOWN_CHARACTERS: Final = 80


def address(_context: click.Context, _param: click.Parameter, url: str | None) -> str | None:
    """Return the address, or None if there is none; exit with 2 if it cannot be called."""
    if url is None:
        return None
    from sandbox_sim.domain.redaction import redact_text  # noqa: PLC0415 -- serve starts fast
    from sandbox_sim.http_addresses import BadAddress, check  # noqa: PLC0415

    try:
        check(url)
    except BadAddress as error:
        shown = redact_text(url)
        if len(shown) > _SHOWN_CHARACTERS:
            shown = shown[:_SHOWN_CHARACTERS] + "…"
        text = f"{shown} is no address such as https://shop.example/callback: it {error}"
        raise click.BadParameter(text) from None
    return url
