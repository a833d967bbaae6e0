"""HTTP, for machines and for people."""
