"""Callbacks: bodies, signatures, allowed destinations, and checks of receivers."""
