"""The base of the addresses that answers name, such as `redirect_url`. Source: D1."""

from sandbox_sim.web.transport.requests import IncomingRequest


class PublicAddress:
    """The setting `public_url`; where it is not set, the address that a request came in by."""

    def __init__(self, public_url: str | None, base_path: str) -> None:
        self._public_url = public_url
        self._base_path = base_path

    def __call__(self, request: IncomingRequest) -> str:
        """Return the address, without a slash at its end."""
        if self._public_url is not None:
            return self._public_url
        transport = request.transport
        host, port = transport.get_extra_info("sockname")[:2] if transport else ("127.0.0.1", 0)
        return f"{request.scheme}://{f'[{host}]' if ':' in host else host}:{port}{self._base_path}"
