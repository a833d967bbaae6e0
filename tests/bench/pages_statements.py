"""The statements that write one batch of notices, each from the temporary table `plan`.

Their parameters are put in by the client (`%%` is one per cent sign).
"""

from __future__ import annotations

from typing import Final

from notifier.store import rollups, trail

PLAN: Final = """
CREATE TEMP TABLE plan AS
WITH placed AS (
    SELECT n, n > %(past)s AS is_open, 0.5 + (n %% 97) / 97.0 AS stretch,
           CASE WHEN n > %(past)s THEN %(now)s - interval '30 min'
                     + (n - %(past)s) * interval '29 min' / %(open)s
                ELSE %(now)s - %(history)s
                     + (n - 1) * (%(history)s - interval '1 hour') / %(past)s
           END AS created_at
      FROM generate_series(%(first)s::bigint, %(last)s) AS n)
SELECT p.n, p.created_at, p.stretch, f.fate, f.state, f.basis, f.canceled, f.revision, f.last_seq,
       (lpad(to_hex((extract(epoch FROM p.created_at) * 1000)::bigint), 12, '0') || '7'
        || lpad(to_hex(p.n %% 4096), 3, '0') || '8' || left(md5('id' || p.n), 15))::uuid
           AS notice_id,
       'evt-' || md5('evt' || p.n) AS event_id, 'rr-' || md5('rr' || p.n) AS reset_request_id,
       'acc-' || md5('acc' || p.n %% greatest(%(notices)s / 3, 1)) AS account_id,
       'dec-' || p.n AS decision_id, md5('trace' || p.n) AS correlation_id,
       (ARRAY['GB', 'DE', 'FR', 'US', 'IN', 'BR', NULL])[1 + p.n %% 7] AS region,
       p.created_at + make_interval(secs => f.life_s) * p.stretch AS expires_at
  FROM placed p JOIN bench_fate f
    ON f.is_open = p.is_open AND p.n * 7919 %% f.whole >= f.low AND p.n * 7919 %% f.whole < f.high
 ORDER BY p.n
"""
ADMISSION: Final = """
INSERT INTO admission (notice_id, event_id, idempotency_key, reset_request_id, account_id,
                       requested_at, admitted_at, content_digest, stop_at, expires_at)
SELECT notice_id, event_id, event_id, reset_request_id, account_id,
       created_at - interval '0.4 s', created_at, sha256(event_id::bytea),
       expires_at - interval '30 s', expires_at
  FROM plan ORDER BY n
"""
EVENT: Final = """
INSERT INTO reset_event (notice_id, event_id, transport_id, signing_key_id, locale, locale_used,
                         mode, decision_id, decision_digest, email_consent, sms_consent, region,
                         correlation_id, received_at)
SELECT notice_id, event_id, 'msg_' || md5('msg' || n), 'k-7f3a', 'en', 'en', 'email_then_sms',
       decision_id, 'sha256:9f86d081884c7d65', true, true, region, correlation_id, created_at
  FROM plan ORDER BY n
"""
CONTACT: Final = """
INSERT INTO contact (notice_id, channel, mask, fingerprint, source, learnt_at)
SELECT notice_id, channel, mask, sha256((account_id || channel)::bytea), 'event', created_at
  FROM plan CROSS JOIN (VALUES ('email', 'j•••@m•••.example'), ('sms', '+44•••42'))
       AS c (channel, mask)
 WHERE created_at > %(now)s - interval '29 days' ORDER BY n, channel
"""
DELIVERY: Final = """
INSERT INTO delivery (notice_id, channel, state, reason, detail, is_fallback, provider,
                      final_acceptance, stop_at, expires_at, due_at, attempts, fence,
                      may_have_left, left_at, arrived_at, changed_at)
SELECT p.notice_id, d.channel, d.state, d.reason, d.detail, d.is_fallback, d.provider,
       d.final_acceptance, p.expires_at - interval '30 s', p.expires_at, p.created_at, d.attempts,
       d.attempts, d.attempts > 0, p.created_at + make_interval(secs => d.left_s) * p.stretch,
       p.created_at + make_interval(secs => d.arrived_s) * p.stretch,
       p.created_at + make_interval(secs => d.changed_s) * p.stretch
  FROM plan p JOIN bench_delivery d USING (fate) ORDER BY p.n, d.channel
"""
ATTEMPT: Final = """
INSERT INTO attempt (notice_id, channel, number, class, key, reference, provider, template_id,
                     template_revision, message_digest, owner, fence, started_at, deadline,
                     finished_at, call_ended, outcome, reason, detail, provider_message_id,
                     resolved_at)
SELECT p.notice_id, a.channel, a.number, CASE a.number WHEN 1 THEN 'first' ELSE 'retry-1' END,
       p.event_id || ':' || a.channel || ':' || a.number,
       'r' || substr(md5(p.event_id), 1, 18) || left(a.channel, 1) || a.number, a.provider,
       'password-reset', p.revision, md5(p.event_id), 'host-a:4711', 1,
       p.created_at + make_interval(secs => a.started_s) * p.stretch,
       p.created_at + make_interval(secs => a.started_s + 30) * p.stretch,
       p.created_at + make_interval(secs => a.finished_s) * p.stretch, true, a.outcome, a.reason,
       a.detail, CASE a.outcome WHEN 'accepted' THEN md5(p.event_id || a.channel) END,
       CASE WHEN a.outcome <> 'unknown' OR p.state = 'expired' OR p.state = 'complete'
            THEN p.created_at + make_interval(secs => a.finished_s) * p.stretch END
  FROM plan p JOIN bench_attempt a USING (fate) ORDER BY p.n, a.channel, a.number
"""
RECEIPT: Final = """
INSERT INTO receipt (receipt_id, provider, account, identity, notice_id, channel, attempt, source,
                     status, final, occurred_at, received_at, applied_at)
SELECT md5(p.event_id || s.seq)::uuid, s.provider, '', sha256((p.event_id || s.seq)::bytea),
       p.notice_id, s.channel, s.attempt, 'callback', s.to_state, true,
       p.created_at + make_interval(secs => s.occurred_s) * p.stretch,
       p.created_at + make_interval(secs => s.after_s) * p.stretch,
       p.created_at + make_interval(secs => s.after_s) * p.stretch
  FROM plan p JOIN bench_step s USING (fate) WHERE s.reason = 'receipt' ORDER BY p.n, s.seq
"""
TRAIL: Final = f"""
WITH RECURSIVE steps AS MATERIALIZED (
    SELECT p.notice_id, s.seq, p.created_at + make_interval(secs => s.after_s) * p.stretch
               AS recorded_at,
           p.created_at + make_interval(secs => s.occurred_s) * p.stretch AS occurred_at,
           p.event_id, p.reset_request_id, p.correlation_id, s.channel, s.attempt, s.actor,
           s.from_state, s.to_state, s.reason, s.detail, s.provider,
           CASE WHEN s.to_state IN ('accepted', 'delivered')
                THEN md5(p.event_id || s.channel) END AS provider_ref,
           CASE WHEN s.reason = 'receipt' THEN md5(p.event_id || s.seq)::uuid END AS receipt_id,
           micros(p.expires_at)
               - micros(p.created_at + make_interval(secs => s.after_s) * p.stretch)
               AS remaining_us,
           'password-reset@' || p.revision AS template_revision, 1 AS policy_revision,
           s.evidence
      FROM plan p JOIN bench_step s USING (fate)),
    chain AS (
        SELECT s.*, zero.h AS prev_hash, {trail.sealed("zero.h", "s")} AS hash
          FROM (SELECT * FROM steps WHERE seq = 1) s
          CROSS JOIN LATERAL (
              SELECT sha256(convert_to(s.notice_id::text, 'UTF8')) AS h OFFSET 0) zero
        UNION ALL
        SELECT s.*, c.hash, {trail.sealed("c.hash", "s")}
          FROM chain c JOIN steps s ON s.notice_id = c.notice_id AND s.seq = c.seq + 1),
    written AS (
        INSERT INTO transition ({", ".join(trail.COLUMNS)}, prev_hash, hash)
        SELECT {", ".join(trail.COLUMNS)}, prev_hash, hash FROM chain
         ORDER BY recorded_at, notice_id, seq)
INSERT INTO notice (notice_id, event_id, reset_request_id, account_id, correlation_id,
                    template_id, template_revision, locale_used, policy_revision, mode, state,
                    basis, canceled_reason, canceled_at, created_at, expires_at, seq, head,
                    changed_at)
SELECT p.notice_id, p.event_id, p.reset_request_id, p.account_id, p.correlation_id,
       'password-reset', p.revision, 'en', 1, 'email_then_sms', p.state, p.basis, p.canceled,
       CASE WHEN p.canceled IS NOT NULL THEN c.recorded_at END, p.created_at, p.expires_at,
       c.seq, c.hash, c.recorded_at
  FROM plan p JOIN chain c ON c.notice_id = p.notice_id AND c.seq = p.last_seq ORDER BY p.n
"""  # noqa: S608 - our own names
TICKETS: Final = """
INSERT INTO ticket_link (ticket_id, notice_id, linked_at, linked_by)
SELECT 'TCK-' || n, notice_id, created_at, 'service' FROM plan WHERE n %% 20 = 0
"""
COUNTED: Final = f"""
WITH fresh AS MATERIALIZED (
        SELECT t.*, date_trunc('minute', t.recorded_at) AS minute,
               t.from_state IS DISTINCT FROM t.to_state AS moved, coalesce(p.region, '') AS region
          FROM plan p JOIN transition t USING (notice_id)),
    {rollups.SHOWN}, {rollups.EXPIRED}, {rollups._COUNTS}
SELECT count(*) FROM counts
"""  # noqa: S608 - our own names
FOR_EACH_BATCH: Final = (
    ADMISSION, EVENT, CONTACT, DELIVERY, ATTEMPT, RECEIPT, TRAIL, TICKETS, COUNTED
)  # fmt: skip
