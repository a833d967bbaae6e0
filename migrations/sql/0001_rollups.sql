-- What the pages of signals and the alert rules read: counts a minute, and samples a minute.

-- How far the trail has been counted: everything that the snapshot `seen` sees. One row.
CREATE TABLE notifier.rollup_reader (
    one_row  boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    span_at  timestamptz,
    seen     pg_snapshot,
    read_at  timestamptz,
    behind   boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- The times that were counted: from `began_at` to `counted_until` without a hole. What lies
-- outside of every span is not nought but not known.
CREATE TABLE notifier.rollup_span (
    began_at      timestamptz PRIMARY KEY,
    counted_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- An empty text stands for "none": a count may have no channel, no provider and no region.
CREATE TABLE notifier.rollup_count (
    minute   timestamptz NOT NULL,
    signal   text NOT NULL,
    channel  text NOT NULL,
    provider text NOT NULL,
    reason   text NOT NULL,
    region   text NOT NULL,
    template text NOT NULL,
    n        bigint NOT NULL,
    PRIMARY KEY (minute, signal, channel, provider, reason, region, template)
) WITH (fillfactor = 80);

-- The same counts with fewer parts: a day of minutes is drawn from these.
CREATE TABLE notifier.rollup_total (
    minute   timestamptz NOT NULL,
    signal   text NOT NULL,
    channel  text NOT NULL,
    template text NOT NULL,
    n        bigint NOT NULL,
    PRIMARY KEY (minute, signal, channel, template)
) WITH (fillfactor = 80);

-- The same counts by the hour: what looks back over days reads these, and minutes at its edges.
CREATE TABLE notifier.rollup_hour (
    hour     timestamptz NOT NULL,
    signal   text NOT NULL,
    channel  text NOT NULL,
    provider text NOT NULL,
    reason   text NOT NULL,
    region   text NOT NULL,
    template text NOT NULL,
    n        bigint NOT NULL,
    PRIMARY KEY (hour, signal, channel, provider, reason, region, template)
) WITH (fillfactor = 80);

-- Ages of what was due and not claimed, the worst sample of each minute; "*" stands for all.
CREATE TABLE notifier.rollup_queue (
    minute   timestamptz NOT NULL,
    channel  text NOT NULL,
    template text NOT NULL,
    region   text NOT NULL,
    waiting  integer NOT NULL,
    p50_s    double precision NOT NULL,
    p95_s    double precision NOT NULL,
    max_s    double precision NOT NULL,
    PRIMARY KEY (minute, channel, template, region)
) WITH (fillfactor = 50);

-- What was open, the most of each minute. A minute without a row was not sampled.
CREATE TABLE notifier.rollup_level (
    minute  timestamptz PRIMARY KEY,
    pending integer NOT NULL,
    unknown integer NOT NULL
) WITH (fillfactor = 50);
