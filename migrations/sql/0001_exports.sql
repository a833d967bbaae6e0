-- Exports that somebody asked for: what, by whom, and the result in parts until it is over its
-- time. The row itself stays: it says who took what out, and the digest of what was taken.

CREATE TABLE notifier.export (
    export_id     uuid PRIMARY KEY,
    requested_by  text NOT NULL,
    role          text NOT NULL,
    requested_at  timestamptz NOT NULL,
    request_id    text,
    reason        text,
    what          text NOT NULL,
    parameters    jsonb NOT NULL,
    words         text NOT NULL,
    format        text NOT NULL CHECK (format IN ('csv', 'json', 'ndjson')),
    reader_zone   text NOT NULL DEFAULT 'UTC',
    masked        text[] NOT NULL,
    as_of         timestamptz NOT NULL,
    state         text NOT NULL CHECK (state IN ('waiting', 'ready', 'failed', 'erased')),
    place         jsonb,
    parts         integer NOT NULL DEFAULT 0,
    rows          integer NOT NULL DEFAULT 0,
    bytes         bigint NOT NULL DEFAULT 0,
    tries         integer NOT NULL DEFAULT 0,
    leased_until  timestamptz,
    finished_at   timestamptz,
    expires_at    timestamptz,
    digest        bytea
) WITH (fillfactor = 70);
CREATE INDEX export_by_time ON notifier.export (requested_at DESC, export_id DESC);
CREATE INDEX export_by_person
    ON notifier.export (requested_by, requested_at DESC, export_id DESC);
CREATE INDEX export_to_do ON notifier.export (requested_at, export_id) WHERE state = 'waiting';
CREATE INDEX export_to_erase ON notifier.export (expires_at, export_id)
    WHERE state = 'ready';

CREATE TABLE notifier.export_part (
    export_id uuid NOT NULL REFERENCES notifier.export,
    place     integer NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (export_id, place)
);
