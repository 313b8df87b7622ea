"""QR codes as SVG, drawn by segno, which is imported when the first one is asked for."""


def qr_code(text: str) -> str:
    """An SVG element without styles of its own, dark on light in any colour scheme."""
    import segno  # noqa: PLC0415 -- see above

    code = segno.make(text, micro=False, error="m")
    svg: str = code.svg_inline(scale=5, border=2, light="#ffffff", dark="#15201a", omitsize=True)
    return svg
