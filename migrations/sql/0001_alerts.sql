-- Who judged the alert rules last, what each found, and whom it told.

-- One row. Whoever judges takes a turn here first; a judge that hung and woke up finds its turn
-- gone and writes nothing. `life_s`: the life of a token that the limits were taken from.
CREATE TABLE notifier.alert_watch (
    one_row   boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    turn      bigint NOT NULL DEFAULT 0,
    taken_at  timestamptz NOT NULL DEFAULT '-infinity',
    taken_by  text NOT NULL DEFAULT '',
    judged_at timestamptz NOT NULL DEFAULT '-infinity',
    life_s    double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- An episode: a rule's limit was crossed for one key (a channel, a provider, a region; empty for
-- the whole product). `held`: not yet for as long as the rule waits; nobody was told of it.
-- `threshold` is the limit with which it opened, as people were told; `life_s` the life of a token
-- by which it is judged until it ends; `threshold_now` its limit at the latest look.
CREATE TABLE notifier.alert_episode (
    episode_id       uuid PRIMARY KEY,
    rule             text NOT NULL,
    key              text NOT NULL,
    state            text NOT NULL CHECK (state IN ('held', 'open', 'resolved')),
    crossed_at       timestamptz NOT NULL,
    opened_at        timestamptz,
    seen_at          timestamptz NOT NULL,
    clear_since      timestamptz,
    value            double precision NOT NULL,
    worst            double precision NOT NULL,
    threshold        double precision NOT NULL,
    threshold_now    double precision NOT NULL,
    life_s           double precision NOT NULL,
    unit             text NOT NULL CHECK (unit IN ('seconds', 'share', 'count')),
    affected         integer NOT NULL,
    acknowledged_by  text,
    acknowledged_at  timestamptz,
    acknowledge_note text,
    resolved_at      timestamptz,
    resolved_by      text,
    resolve_note     text,
    led_to_action    text CHECK (led_to_action IN ('yes', 'no', 'partly')),
    review_what      text,
    review_verdict   text CHECK (review_verdict IN ('keep', 'tune', 'delete')),
    reviewed_by      text,
    reviewed_at      timestamptz,
    version          integer NOT NULL DEFAULT 1,
    CONSTRAINT opened_unless_held CHECK ((opened_at IS NULL) = (state = 'held')),
    CONSTRAINT resolved_by_somebody CHECK
        ((resolved_at IS NOT NULL) = (state = 'resolved')
         AND (resolved_by IS NOT NULL) = (state = 'resolved')),
    CONSTRAINT acknowledged_by_somebody CHECK
        ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)),
    CONSTRAINT reviewed_whole CHECK
        ((reviewed_at IS NULL) = (led_to_action IS NULL)
         AND (reviewed_at IS NULL) = (review_verdict IS NULL)
         AND (reviewed_at IS NULL) = (reviewed_by IS NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX alert_one_standing ON notifier.alert_episode (rule, key)
    WHERE state <> 'resolved';
CREATE INDEX alert_by_time ON notifier.alert_episode (opened_at DESC, episode_id DESC)
    WHERE state <> 'held';
CREATE INDEX alert_unreviewed ON notifier.alert_episode (opened_at DESC, episode_id DESC)
    WHERE state = 'resolved' AND reviewed_at IS NULL;
CREATE INDEX alert_by_end ON notifier.alert_episode (resolved_at) WHERE state = 'resolved';

-- What people wrote beside an episode while it lasted; never changed.
CREATE TABLE notifier.alert_note (
    episode_id uuid NOT NULL REFERENCES notifier.alert_episode ON DELETE CASCADE,
    at         timestamptz NOT NULL,
    by         text NOT NULL,
    text       text NOT NULL,
    PRIMARY KEY (episode_id, at, by)
);

-- Pages to be sent: one a receiver. A receiver is named by the kind of its address, and its host
-- where that holds no secret.
CREATE TABLE notifier.alert_page (
    episode_id uuid NOT NULL REFERENCES notifier.alert_episode ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('opened', 'resolved')),
    receiver   text NOT NULL,
    made_at    timestamptz NOT NULL,
    due_at     timestamptz NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    sent_at    timestamptz,
    given_up_at timestamptz,
    trouble    text,
    PRIMARY KEY (episode_id, kind, receiver)
) WITH (fillfactor = 70);
CREATE INDEX alert_page_due ON notifier.alert_page (due_at)
    WHERE sent_at IS NULL AND given_up_at IS NULL;
