"""Postgres: the ledger writes state, the reads feed pages and jobs."""
