"""Signed and token-bearing endpoints for other programs."""
