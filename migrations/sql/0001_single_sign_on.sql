-- A way to the issuer that has not come back yet. Neither the nonce nor the code verifier is
-- kept: both follow from a secret that only this browser's cookie holds, and from the state.
CREATE TABLE notifier.sign_in_start (
    state_digest   bytea PRIMARY KEY,
    browser_digest bytea NOT NULL,
    issuer         text NOT NULL,
    next_path      text NOT NULL,
    expires_at     timestamptz NOT NULL
);
CREATE INDEX sign_in_start_by_end ON notifier.sign_in_start (expires_at);
