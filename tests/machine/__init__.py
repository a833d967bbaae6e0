"""Every interleaving of what can happen to a notice, beside a model that the design dictates."""
