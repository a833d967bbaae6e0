"""Tests: honest sockets, a real Postgres, the clock in hand."""
