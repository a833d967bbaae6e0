"""Game days: one fault each, and the alert that must tell of it; quiet days, and none."""
