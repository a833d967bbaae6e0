"""Message templates by revision and their deterministic rendering."""
