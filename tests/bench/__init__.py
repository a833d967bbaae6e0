"""Benchmarks: how fast, against what the same database could do, and with how much memory."""
