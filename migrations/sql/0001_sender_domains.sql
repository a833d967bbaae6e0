-- What DNS says about the domains that we send from: evidence of its own, apart from deliveries.

-- A domain that was ever sent from. Whoever checks it pushes `due_at` forward first.
CREATE TABLE notifier.sender_domain (
    domain     text PRIMARY KEY,
    due_at     timestamptz NOT NULL,
    checked_at timestamptz,
    asked_at   timestamptz,
    asked_by   text
) WITH (fillfactor = 70);

-- A record as it was observed, from the first time to the last that it was just so. `ended_at`:
-- when something else was observed. `selector` is empty but for DKIM.
CREATE TABLE notifier.sender_record (
    record_id     uuid PRIMARY KEY,
    domain        text NOT NULL REFERENCES notifier.sender_domain,
    kind          text NOT NULL CHECK (kind IN ('spf', 'dkim', 'dmarc', 'alignment')),
    selector      text NOT NULL DEFAULT '',
    name          text NOT NULL,
    verdict       text NOT NULL CHECK (verdict IN ('pass', 'warn', 'fail', 'unknown')),
    texts         text[] NOT NULL,
    reasons       text[] NOT NULL,
    facts         jsonb NOT NULL,
    resolver      text NOT NULL,
    ttl_s         integer,
    checks        integer NOT NULL DEFAULT 1,
    first_seen_at timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    ended_at      timestamptz
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sender_record_standing ON notifier.sender_record (domain, kind, selector)
    WHERE ended_at IS NULL;
CREATE INDEX sender_record_by_time
    ON notifier.sender_record (first_seen_at DESC, record_id DESC);
CREATE INDEX sender_record_by_name
    ON notifier.sender_record (domain, kind, selector, first_seen_at DESC);
