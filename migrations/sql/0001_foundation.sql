-- The whole schema of the straight way. Names live in the schema "notifier"; unqualified
-- names in function bodies are resolved through the session's search_path, so that the
-- clock can be replaced in tests and nowhere else.

CREATE SCHEMA IF NOT EXISTS notifier;
CREATE SCHEMA IF NOT EXISTS scheduler;

-- The only clock. clock_timestamp, not now(): a statement that waited for a lock must see
-- the time at which it goes on.
CREATE FUNCTION notifier.db_now() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$ SELECT pg_catalog.clock_timestamp() $$;

-- ---------------------------------------------------------------- keys, for ever

-- Never partitioned and never pruned: promise P1 rests on its three unique keys. Holds
-- also what search needs.
CREATE TABLE notifier.admission (
    notice_id        uuid PRIMARY KEY,
    event_id         text NOT NULL,
    idempotency_key  text NOT NULL,
    reset_request_id text NOT NULL,
    account_id       text NOT NULL,
    requested_at     timestamptz NOT NULL,
    admitted_at      timestamptz NOT NULL,
    supersedes       boolean NOT NULL DEFAULT false,
    content_digest   bytea NOT NULL,
    stop_at          timestamptz,
    expires_at       timestamptz NOT NULL,
    CONSTRAINT admission_event_once UNIQUE (event_id),
    CONSTRAINT admission_key_once UNIQUE (idempotency_key),
    CONSTRAINT admission_reset_request_once UNIQUE (reset_request_id)
);
CREATE INDEX admission_by_account ON notifier.admission (account_id, requested_at DESC);
CREATE INDEX admission_superseding ON notifier.admission (account_id, requested_at DESC)
    WHERE supersedes;

CREATE TABLE notifier.ticket_link (
    ticket_id text NOT NULL,
    notice_id uuid NOT NULL,
    linked_at timestamptz NOT NULL,
    linked_by text NOT NULL,
    PRIMARY KEY (ticket_id, notice_id)
);
CREATE INDEX ticket_link_by_notice ON notifier.ticket_link (notice_id);

-- ---------------------------------------------------------------- policy, templates

CREATE TABLE notifier.policy_revision (
    revision   integer PRIMARY KEY,
    document   jsonb NOT NULL,
    digest     bytea NOT NULL,
    author     text NOT NULL,
    reason     text NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE notifier.template_revision (
    template_id   text NOT NULL,
    revision      text NOT NULL,
    source_digest bytea NOT NULL,
    first_seen    timestamptz NOT NULL,
    PRIMARY KEY (template_id, revision)
);

-- ---------------------------------------------------------------- the notice

-- Retention takes from the old end, here and of `contact` and `receipt`: no dead rows may gather.
CREATE TABLE notifier.reset_event (
    notice_id         uuid PRIMARY KEY,
    event_id          text NOT NULL,
    transport_id      text,
    signing_key_id    text NOT NULL,
    locale            text,
    locale_used       text NOT NULL,
    mode              text NOT NULL,
    reason_code       text,
    decision_id       text,
    decision_digest   text,
    email_consent     boolean,
    sms_consent       boolean,
    region            text,
    correlation_id    text,
    received_at       timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE TABLE notifier.notice (
    notice_id         uuid PRIMARY KEY,
    event_id          text NOT NULL,
    reset_request_id  text NOT NULL,
    account_id        text NOT NULL,
    correlation_id    text,
    template_id       text NOT NULL,
    template_revision text NOT NULL,
    locale_used       text NOT NULL,
    policy_revision   integer NOT NULL,
    mode              text NOT NULL,
    state             text NOT NULL CHECK (state IN ('email_pending', 'text_pending', 'complete',
                          'canceled', 'expired', 'failed', 'suppressed')),
    basis             text,
    canceled_reason   text,
    canceled_at       timestamptz,
    created_at        timestamptz NOT NULL,
    expires_at        timestamptz NOT NULL,
    fallback_at       timestamptz,
    hold_noted        boolean NOT NULL DEFAULT false,
    avoidable_noted   boolean NOT NULL DEFAULT false,
    seq               integer NOT NULL,
    head              bytea NOT NULL,
    changed_at        timestamptz NOT NULL,
    details_erased_at timestamptz
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX notice_open ON notifier.notice (expires_at, notice_id)
    WHERE state IN ('email_pending', 'text_pending');
CREATE INDEX notice_fallback_due ON notifier.notice (fallback_at, notice_id)
    WHERE fallback_at IS NOT NULL;
CREATE INDEX notice_expired ON notifier.notice (expires_at DESC, notice_id DESC)
    WHERE state = 'expired';
CREATE INDEX notice_failed ON notifier.notice (changed_at DESC, notice_id DESC)
    WHERE state = 'failed';

-- What may be erased without touching the trail.
CREATE TABLE notifier.contact (
    notice_id    uuid NOT NULL,
    channel      text NOT NULL,
    mask         text NOT NULL,
    fingerprint  bytea NOT NULL,
    source       text NOT NULL,
    learnt_at    timestamptz NOT NULL,
    PRIMARY KEY (notice_id, channel)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX contact_by_fingerprint ON notifier.contact (fingerprint, notice_id);

CREATE TABLE notifier.delivery (
    notice_id      uuid NOT NULL,
    channel        text NOT NULL CHECK (channel IN ('email', 'sms')),
    state          text NOT NULL CHECK (state IN ('standby', 'queued', 'claimed', 'attempted',
                       'unknown', 'accepted', 'delivered', 'failed', 'suppressed', 'expired',
                       'canceled')),
    reason         text NOT NULL,
    detail         text,
    is_fallback    boolean NOT NULL DEFAULT false,
    provider       text,
    final_acceptance boolean NOT NULL DEFAULT false,
    stop_at        timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    due_at         timestamptz NOT NULL,
    link_tries     integer NOT NULL DEFAULT 0,
    attempts       integer NOT NULL DEFAULT 0,
    fence          bigint NOT NULL DEFAULT 0,
    lease_owner    text,
    lease_until    timestamptz,
    next_check_at  timestamptz,
    looks          integer NOT NULL DEFAULT 0,
    absent_looks   integer NOT NULL DEFAULT 0,
    replay_due_at  timestamptz,
    may_have_left  boolean NOT NULL DEFAULT false,
    left_at        timestamptz,
    arrived_at     timestamptz,
    requeued_at    timestamptz,
    changed_at     timestamptz NOT NULL,
    PRIMARY KEY (notice_id, channel),
    CONSTRAINT lease_belongs_to_work CHECK
        ((lease_owner IS NOT NULL) = (state IN ('claimed', 'attempted'))
         AND (lease_until IS NOT NULL) = (lease_owner IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX delivery_queued ON notifier.delivery (channel, stop_at, notice_id)
    WHERE state = 'queued';
CREATE INDEX delivery_leased ON notifier.delivery (lease_until, notice_id, channel)
    WHERE lease_owner IS NOT NULL;
CREATE INDEX delivery_unsent_stop ON notifier.delivery (stop_at, notice_id, channel)
    WHERE state IN ('standby', 'queued');
CREATE INDEX delivery_unproven_expiry ON notifier.delivery (expires_at, notice_id, channel)
    WHERE state = 'unknown' OR (state = 'accepted' AND NOT final_acceptance);
CREATE INDEX delivery_unknown ON notifier.delivery (changed_at, notice_id, channel)
    WHERE state = 'unknown';
CREATE INDEX delivery_to_replay ON notifier.delivery (channel, replay_due_at, notice_id)
    WHERE replay_due_at IS NOT NULL;
CREATE INDEX delivery_to_check ON notifier.delivery (next_check_at, notice_id, channel)
    WHERE next_check_at IS NOT NULL;

CREATE TABLE notifier.attempt (
    notice_id           uuid NOT NULL,
    channel             text NOT NULL,
    number              integer NOT NULL,
    class               text NOT NULL,
    key                 text NOT NULL,
    reference           text NOT NULL,
    provider            text NOT NULL,
    template_id         text NOT NULL,
    template_revision   text NOT NULL,
    message_digest      text NOT NULL,
    owner               text NOT NULL,
    fence               bigint NOT NULL,
    started_at          timestamptz NOT NULL,
    deadline            timestamptz NOT NULL,
    finished_at         timestamptz,
    call_ended          boolean NOT NULL DEFAULT false,
    outcome             text CHECK (outcome IN ('accepted', 'refused', 'not_accepted', 'unknown')),
    reason              text,
    detail              text,
    provider_code       text,
    provider_message_id text,
    replay_authorised_at timestamptz,
    replay_started_at   timestamptz,
    replay_ended_at     timestamptz,
    resolved_at         timestamptz,
    PRIMARY KEY (notice_id, channel, number),
    CONSTRAINT attempt_key_once UNIQUE (key),
    CONSTRAINT attempt_reference_once UNIQUE (reference)
) WITH (fillfactor = 85);
-- A second send is impossible while one is unresolved, whatever the code does.
CREATE UNIQUE INDEX attempt_one_open ON notifier.attempt (notice_id, channel)
    WHERE resolved_at IS NULL;
CREATE INDEX attempt_unanswered ON notifier.attempt (notice_id, channel)
    WHERE resolved_at IS NULL
      AND (NOT call_ended OR (replay_started_at IS NOT NULL AND replay_ended_at IS NULL));
CREATE INDEX attempt_by_provider_message ON notifier.attempt (provider, provider_message_id)
    WHERE provider_message_id IS NOT NULL;

CREATE TABLE notifier.receipt (
    receipt_id          uuid PRIMARY KEY,
    provider            text NOT NULL,
    account             text NOT NULL,
    identity            bytea NOT NULL,
    notice_id           uuid,
    channel             text,
    attempt             integer,
    reference           text,
    provider_message_id text,
    source              text NOT NULL CHECK (source IN ('callback', 'poll', 'look_up')),
    status              text NOT NULL,
    detail              text,
    provider_code       text,
    final               boolean NOT NULL,
    occurred_at         timestamptz,
    received_at         timestamptz NOT NULL,
    look_at             timestamptz NOT NULL DEFAULT '-infinity',
    applied_at          timestamptz,
    CONSTRAINT receipt_once UNIQUE (provider, account, identity)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX receipt_parked ON notifier.receipt (received_at, receipt_id) WHERE applied_at IS NULL;
CREATE INDEX receipt_to_match ON notifier.receipt (look_at, receipt_id)
    WHERE applied_at IS NULL;
CREATE INDEX receipt_parked_by_message ON notifier.receipt (provider, provider_message_id)
    WHERE applied_at IS NULL;
CREATE INDEX receipt_parked_by_reference ON notifier.receipt (reference) WHERE applied_at IS NULL;
CREATE INDEX receipt_by_notice ON notifier.receipt (notice_id, received_at);

-- ---------------------------------------------------------------- the trail

CREATE TABLE notifier.transition (
    notice_id         uuid NOT NULL,
    seq               integer NOT NULL,
    recorded_at       timestamptz NOT NULL,
    occurred_at       timestamptz NOT NULL,
    event_id          text NOT NULL,
    reset_request_id  text NOT NULL,
    correlation_id    text,
    channel           text,
    attempt           integer,
    actor             text NOT NULL,
    from_state        text,
    to_state          text,
    reason            text NOT NULL,
    detail            text,
    provider          text,
    provider_ref      text,
    receipt_id        uuid,
    remaining_us      bigint NOT NULL,
    template_revision text NOT NULL,
    policy_revision   integer NOT NULL,
    evidence          jsonb,
    prev_hash         bytea NOT NULL,
    hash              bytea NOT NULL,
    written_in        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (notice_id, seq)
);
-- Who wrote a row, so that the trail can be read forward without missing a transaction that
-- commits late. Not under the hash: it says something about this database, not about the notice.
CREATE INDEX transition_written ON notifier.transition (written_in);
-- What the page of channel failures reads, newest first: few rows, whatever the trail holds.
CREATE INDEX transition_failures ON notifier.transition (recorded_at, notice_id, seq)
    INCLUDE (channel, reason, detail, provider)
    WHERE reason IN ('not_accepted', 'unmapped')
       OR (to_state = 'failed' AND from_state <> 'failed')
       OR (reason IN ('late_receipt', 'contradicting_receipt') AND from_state <> 'failed'
           AND evidence ->> 'status' = 'failed');

CREATE FUNCTION notifier.micros(at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT (extract(epoch FROM at AT TIME ZONE 'UTC') * 1000000)::bigint $$;

-- One field: its length in bytes, a colon, its text, a comma; an absent one is "-,". Two
-- different rows can therefore never give the same input to the digest.
CREATE FUNCTION notifier.trail_field(field text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT coalesce(octet_length(field)::text || ':' || field || ',', '-,') $$;

CREATE FUNCTION notifier.trail_hash(
    prev_hash bytea, notice_id uuid, seq integer, recorded_at timestamptz, occurred_at timestamptz,
    event_id text, reset_request_id text, correlation_id text, channel text, attempt integer,
    actor text, from_state text, to_state text, reason text, detail text, provider text,
    provider_ref text, receipt_id uuid, remaining_us bigint, template_revision text,
    policy_revision integer, evidence jsonb
) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT sha256(prev_hash || convert_to(
        notifier.trail_field(notice_id::text) || notifier.trail_field(seq::text)
        || notifier.trail_field(notifier.micros(recorded_at)::text)
        || notifier.trail_field(notifier.micros(occurred_at)::text)
        || notifier.trail_field(event_id) || notifier.trail_field(reset_request_id)
        || notifier.trail_field(correlation_id) || notifier.trail_field(channel)
        || notifier.trail_field(attempt::text) || notifier.trail_field(actor)
        || notifier.trail_field(from_state) || notifier.trail_field(to_state)
        || notifier.trail_field(reason) || notifier.trail_field(detail)
        || notifier.trail_field(provider) || notifier.trail_field(provider_ref)
        || notifier.trail_field(receipt_id::text) || notifier.trail_field(remaining_us::text)
        || notifier.trail_field(template_revision) || notifier.trail_field(policy_revision::text)
        || notifier.trail_field(evidence::text), 'UTF8'))
    $$;

CREATE FUNCTION notifier.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER transition_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON notifier.transition
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();
CREATE TRIGGER policy_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON notifier.policy_revision
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();
CREATE TRIGGER admission_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON notifier.admission
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();

-- ---------------------------------------------------------------- operators

CREATE TABLE notifier.halt (
    halt_id         uuid PRIMARY KEY,
    scope           text NOT NULL,
    reason          text NOT NULL,
    engaged_by      text NOT NULL,
    engaged_at      timestamptz NOT NULL,
    released_by     text,
    release_reason  text,
    released_at     timestamptz
);
CREATE UNIQUE INDEX halt_one_per_scope ON notifier.halt (scope) WHERE released_at IS NULL;

CREATE TABLE notifier.provider_pause (
    provider  text PRIMARY KEY,
    detail    text NOT NULL,
    since     timestamptz NOT NULL,
    until     timestamptz NOT NULL,
    times     integer NOT NULL DEFAULT 1
);

-- ---------------------------------------------------------------- sweeps

CREATE TABLE notifier.leader (
    name      text PRIMARY KEY,
    owner     text NOT NULL,
    epoch     bigint NOT NULL,
    until     timestamptz NOT NULL
);

CREATE TABLE notifier.sweep_run (
    name         text PRIMARY KEY,
    owner        text NOT NULL,
    epoch        bigint NOT NULL,
    started_at   timestamptz NOT NULL,
    finished_at  timestamptz,
    rows         integer,
    backlog      integer,
    runs         bigint NOT NULL DEFAULT 0,
    failures     bigint NOT NULL DEFAULT 0,
    error        text,
    failed_at    timestamptz
) WITH (fillfactor = 50);

CREATE TABLE notifier.process (
    owner       text PRIMARY KEY,
    host        text NOT NULL,
    pid         integer NOT NULL,
    workers     integer NOT NULL,
    version     text NOT NULL,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    stopped_at  timestamptz
) WITH (fillfactor = 50);

CREATE TABLE notifier.rate_window (
    name       text NOT NULL,
    window_at  timestamptz NOT NULL,
    hits       integer NOT NULL,
    PRIMARY KEY (name, window_at)
) WITH (fillfactor = 50);

-- A cancel's signature does not cover the address, where its event stands: a message ends the
-- event that it was first used for, and no other.
CREATE TABLE notifier.signed_cancel (
    signed_digest  bytea PRIMARY KEY,
    event_id       text NOT NULL,
    seen_at        timestamptz NOT NULL
);

-- ---------------------------------------------------------------- people

CREATE TABLE notifier.person (
    person_id      uuid PRIMARY KEY,
    name           text NOT NULL UNIQUE,
    role           text NOT NULL CHECK (role IN ('support', 'on-call', 'auditor', 'admin')),
    password_hash  text,
    source         text NOT NULL DEFAULT 'local' CHECK (source IN ('local', 'oidc')),
    issuer         text,
    subject        text,
    created_at     timestamptz NOT NULL,
    disabled_at    timestamptz,
    CHECK ((source = 'oidc') = (issuer IS NOT NULL AND subject IS NOT NULL)),
    CHECK (source = 'local' OR password_hash IS NULL),
    UNIQUE (issuer, subject)
);

CREATE TABLE notifier.sign_in_link (
    token_digest  bytea PRIMARY KEY,
    person_id     uuid NOT NULL REFERENCES notifier.person,
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    used_at       timestamptz
);

-- `role` is set where the issuer said it: it stays with the session until that ends.
CREATE TABLE notifier.session (
    token_digest  bytea PRIMARY KEY,
    person_id     uuid NOT NULL REFERENCES notifier.person,
    role          text CHECK (role IN ('support', 'on-call', 'auditor', 'admin')),
    created_at    timestamptz NOT NULL,
    seen_at       timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    ended_at      timestamptz
);
CREATE INDEX session_by_person ON notifier.session (person_id);

-- A destination search keeps no term: only its keyed fingerprint and mask, for minutes.
CREATE TABLE notifier.search_token (
    token_digest   bytea PRIMARY KEY,
    session_digest bytea NOT NULL,
    channel        text NOT NULL,
    fingerprints   bytea[] NOT NULL,
    mask           text NOT NULL,
    created_at     timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL
);

CREATE TABLE notifier.read_audit (
    read_id     uuid PRIMARY KEY,
    at          timestamptz NOT NULL,
    person      text NOT NULL,
    role        text NOT NULL,
    action      text NOT NULL,
    object_kind text NOT NULL,
    object_ref  text,
    hits        integer,
    request_id  text,
    reason      text,
    outcome     text NOT NULL DEFAULT 'shown' CHECK (outcome IN ('shown', 'refused', 'asked',
                    'done', 'stale', 'not_done'))
);
CREATE INDEX read_audit_by_time ON notifier.read_audit (at DESC, read_id DESC);
CREATE INDEX read_audit_by_person ON notifier.read_audit (person, at DESC, read_id DESC);
-- Counting the looks of one kind must not read all looks.
CREATE INDEX read_audit_by_action
    ON notifier.read_audit (action, object_kind, at DESC, read_id DESC);
-- Who read one notice.
CREATE INDEX read_audit_by_object ON notifier.read_audit (object_ref, at DESC, read_id DESC)
    WHERE object_ref IS NOT NULL;
CREATE TRIGGER read_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON notifier.read_audit
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();
