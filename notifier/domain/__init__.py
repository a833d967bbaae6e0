"""Pure rules: states, reasons, policy, decisions. No input or output."""
