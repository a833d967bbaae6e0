-- Signed statements over the ends of the chains: what shows that a tail was removed together
-- with its head.

-- Numbered without gaps from 1; `previous` is the hash of the one before. `cut`: every row that was
-- written in a transaction below this number is under this checkpoint or an earlier one.
-- `complete`: it took all that there was to take.
CREATE TABLE notifier.checkpoint (
    number       bigint PRIMARY KEY,
    made_at      timestamptz NOT NULL,
    previous     bytea NOT NULL,
    head_count   integer NOT NULL,
    heads_digest bytea NOT NULL,
    key_id       text NOT NULL,
    signature    bytea NOT NULL,
    hash         bytea NOT NULL,
    cut          xid8 NOT NULL,
    complete     boolean NOT NULL
);

CREATE TABLE notifier.checkpoint_head (
    notice_id uuid NOT NULL,
    number    bigint NOT NULL,
    seq       integer NOT NULL,
    head      bytea NOT NULL,
    PRIMARY KEY (notice_id, number)
);
CREATE INDEX checkpoint_head_by_number ON notifier.checkpoint_head (number);

CREATE TRIGGER checkpoint_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON notifier.checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();
CREATE TRIGGER checkpoint_head_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON notifier.checkpoint_head
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();
