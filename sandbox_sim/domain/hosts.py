"""Hosts: which of them only this machine can reach."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a name or an address, without brackets, is this machine's own."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
