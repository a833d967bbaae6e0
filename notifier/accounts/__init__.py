"""People who sign in: accounts, sessions, permissions, the audit of reads."""
