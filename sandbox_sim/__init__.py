"""A high-fidelity stand-in for a Ghanaian payment, airtime, bill and SMS gateway."""

__version__ = "0.1.0"
