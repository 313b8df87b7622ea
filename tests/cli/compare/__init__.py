"""Tests of `sandbox-sim compare`."""
