"""Callbacks: bodies, receivers, where they may go, and what a receiver does wrong."""
