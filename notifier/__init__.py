"""The reset-notice service: admits reset events, tells the person once, proves what it did."""

__version__ = "0.1.0"
