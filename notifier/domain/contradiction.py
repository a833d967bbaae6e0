"""What is wrong with a policy whose values are each of the right kind."""

from __future__ import annotations

Contradiction = tuple[str, str, str]
"""Pointer, code, sentence. The pointer is the document's own where several keys clash."""
