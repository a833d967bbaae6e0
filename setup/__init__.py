"""What `make setup` runs. Uses the standard library alone: it makes the environment."""
