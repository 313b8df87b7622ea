"""A small shop that pays through the gateway: the demonstration, and the reference integration.

It is a program of its own. It imports nothing else of `sandbox_sim`, and talks to the gateway over
HTTP only, as the shop of a merchant does. docs/integrating.md explains it step by step.
"""
