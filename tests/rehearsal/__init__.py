"""Rehearsals: the engine, its agreement with the real ledger, and the command."""
