"""An address on the command line that callbacks go to. Source: D37."""

from typing import Final

import click

# How much of an address that cannot be called is shown.
_SHOWN_CHARACTERS: Final = 80


def address(_context: click.Context, _param: click.Parameter, url: str | None) -> str | None:
    """The address, if it is given; exit code 2 and a sentence where it cannot be called."""
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
