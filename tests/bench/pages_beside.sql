-- What an installation of this age holds beside its notices. `%(now)s`, `%(history)s`,
-- `%(notices)s` and `%(halted)s` are given. A statement ends with a semicolon at a line's end.

INSERT INTO rollup_span VALUES (%(now)s - %(history)s, %(now)s);

INSERT INTO rollup_reader (span_at, seen, read_at)
SELECT %(now)s - %(history)s, pg_current_snapshot(), %(now)s;

INSERT INTO rollup_level
SELECT date_trunc('minute', at), 1500 + (random() * 500)::int, 200 + (random() * 100)::int
  FROM generate_series(%(now)s - %(history)s, %(now)s, interval '1 min') AS at;

INSERT INTO rollup_queue
SELECT date_trunc('minute', at), channel, template, region, 1 + (random() * 50)::int,
       random() * 2, 2 + random() * 3, 5 + random() * 5
  FROM generate_series(%(now)s - %(history)s, %(now)s, interval '1 min') AS at,
       (VALUES ('*'), ('email'), ('sms')) AS c (channel),
       (VALUES ('*'), ('password-reset@1')) AS t (template),
       (VALUES ('*'), ('GB'), ('DE'), ('FR')) AS r (region);

-- One in four is a look at a notice, as in a support centre.
INSERT INTO read_audit (read_id, at, person, role, action, object_kind, object_ref, hits,
                        request_id, reason)
SELECT gen_random_uuid(), %(now)s - random() * %(history)s, 'person-' || n %% 60, 'support',
       CASE WHEN n %% 4 = 0 THEN 'view' WHEN n %% 4 = 1 THEN 'look_up' ELSE 'list' END,
       CASE WHEN n %% 4 = 0 THEN 'notice' WHEN n %% 4 = 1 THEN 'event' ELSE 'pending' END,
       CASE WHEN n %% 4 = 0 THEN gen_random_uuid()::text
            WHEN n %% 4 = 1 THEN 'evt-' || md5('evt' || n) END, 1, md5('request' || n), NULL
  FROM generate_series(1, greatest(%(notices)s / 2, 500)) AS n;

INSERT INTO alert_episode (episode_id, rule, key, state, crossed_at, opened_at, seen_at, value,
                           worst, threshold, threshold_now, life_s, unit, affected,
                           resolved_at, resolved_by,
                           led_to_action, review_verdict, reviewed_by, reviewed_at)
SELECT md5('alert' || n)::uuid, rule, 'email', 'resolved', at, at, at, 70, 90, 60, 60,
       600, 'seconds', 12,
       at + interval '20 min', 'rule', CASE WHEN done THEN 'yes' END,
       CASE WHEN done THEN 'keep' END, CASE WHEN done THEN 'person-1' END,
       CASE WHEN done THEN at + interval '1 day' END
  FROM (SELECT n, n %% 2 = 0 AS done, %(now)s - n * %(history)s / 2000 AS at,
               (ARRAY['queue_age', 'unknown_rate', 'channel_failures', 'expired'])[1 + n %% 4]
                   AS rule
          FROM generate_series(1, 2000) AS n) AS made;

INSERT INTO alert_note
SELECT md5('alert' || n)::uuid, %(now)s - n * %(history)s / 2000, 'person-1', 'the provider is slow'
  FROM generate_series(1, 2000) AS n;

INSERT INTO alert_page (episode_id, kind, receiver, made_at, due_at, tries, sent_at)
SELECT md5('alert' || n)::uuid, kind, 'pager-1', %(now)s, %(now)s, 1, %(now)s
  FROM generate_series(1, 2000) AS n, (VALUES ('opened'), ('resolved')) AS k (kind);

INSERT INTO export (export_id, requested_by, role, requested_at, what, parameters, words, format,
                    masked, as_of, state, parts, rows, bytes, tries, finished_at, expires_at,
                    digest)
SELECT md5('export' || n)::uuid, 'person-' || n %% 60, 'on-call', at, 'pending', '{}',
       'everything', 'csv', '{mask}', at, 'erased', 3, 2000, 400000, 1, at + interval '9 s',
       at + interval '1 day', sha256(n::text::bytea)
  FROM (SELECT n, %(now)s - n * %(history)s / 1000 AS at FROM generate_series(1, 1000) AS n)
       AS made;

INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at, released_by, release_reason,
                  released_at)
SELECT gen_random_uuid(), 'channel:sms', 'provider is down', 'person-1', at, 'person-2', 'it is up',
       at + interval '30 min'
  FROM (SELECT %(now)s - n * interval '1 day' AS at FROM generate_series(1, 30) AS n) AS made;

INSERT INTO halt (halt_id, scope, reason, engaged_by, engaged_at)
VALUES (gen_random_uuid(), %(halted)s, 'wrong words', 'person-1', %(now)s - interval '1 hour');

INSERT INTO process (owner, host, pid, workers, version, started_at, seen_at, stopped_at)
SELECT 'host-' || n || ':4711', 'host-' || n, 4711, 8, '0.9', at, at + interval '1 day',
       at + interval '1 day'
  FROM (SELECT n, %(now)s - n * interval '1 day' AS at FROM generate_series(1, 60) AS n) AS made;

-- All that was seeded counts as sealed; what comes to be meanwhile is sealed by the product.
INSERT INTO checkpoint
SELECT 1, %(now)s, '\x00', 0, '\x00', 'bench', '\x00', sha256('bench'),
       pg_current_xact_id(), true;

DROP TABLE bench_fate, bench_step, bench_delivery, bench_attempt;
