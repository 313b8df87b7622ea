"""Callbacks: bodies, signature, allowed hosts, delivery, and the examination of receivers."""
