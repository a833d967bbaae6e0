-- The state machine's own rules in the database: the same triples as notifier/domain/states.py.
-- A trail row that claims any other move, and a state column that makes any other, are refused.

CREATE FUNCTION notifier.permitted_moves() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT ARRAY[
        '>queued:fallback_email_suppressed', '>queued:primary_selected',
        '>standby:fallback_reserved', '>suppressed:account_cap_reached',
        '>suppressed:excluded_by_policy', '>suppressed:invalid_destination',
        '>suppressed:life_too_short_for_fallback', '>suppressed:no_consent',
        '>suppressed:no_destination', '>suppressed:region_not_permitted',
        '>expired:expired_on_arrival', '>canceled:reset_superseded',
        'standby>queued:fallback_email_expired', 'standby>queued:fallback_email_failed',
        'standby>queued:fallback_email_not_sent', 'standby>queued:fallback_email_suppressed',
        'standby>queued:fallback_email_unconfirmed', 'standby>queued:fallback_email_unknown',
        'standby>queued:text_ended_in_time', 'standby>suppressed:fallback_held_by_policy',
        'standby>suppressed:primary_accepted_final', 'standby>suppressed:primary_delivered',
        'standby>suppressed:superseded_by_fallback', 'standby>expired:too_close_to_expiry',
        'standby>expired:window_closed', 'standby>canceled:operator_stop',
        'standby>canceled:reset_revoked', 'standby>canceled:reset_superseded',
        'standby>canceled:reset_used', 'standby>accepted:earlier_attempt_found',
        'standby>delivered:earlier_attempt_found', 'standby>failed:earlier_attempt_found',
        'queued>claimed:claimed', 'queued>standby:fallback_goes_first',
        'queued>standby:primary_delivered', 'queued>suppressed:primary_accepted_final',
        'queued>expired:too_close_to_expiry', 'queued>expired:window_closed',
        'queued>canceled:operator_stop', 'queued>canceled:reset_revoked',
        'queued>canceled:reset_superseded', 'queued>canceled:reset_used',
        'queued>accepted:earlier_attempt_found', 'queued>delivered:earlier_attempt_found',
        'queued>failed:earlier_attempt_found', 'claimed>queued:halted',
        'claimed>queued:lease_expired', 'claimed>queued:link_unavailable',
        'claimed>queued:provider_paused', 'claimed>queued:shutdown',
        'claimed>attempted:attempt_started', 'claimed>standby:fallback_goes_first',
        'claimed>standby:primary_delivered', 'claimed>suppressed:invalid_destination',
        'claimed>suppressed:no_destination', 'claimed>suppressed:not_permitted',
        'claimed>suppressed:primary_accepted_final', 'claimed>suppressed:region_not_permitted',
        'claimed>failed:earlier_attempt_found', 'claimed>failed:internal_fault',
        'claimed>failed:render_failed', 'claimed>expired:too_close_to_expiry',
        'claimed>expired:window_closed', 'claimed>canceled:operator_stop',
        'claimed>canceled:reset_revoked', 'claimed>canceled:reset_superseded',
        'claimed>canceled:reset_used', 'claimed>accepted:earlier_attempt_found',
        'claimed>delivered:earlier_attempt_found', 'attempted>accepted:late_answer',
        'attempted>accepted:provider_accepted', 'attempted>accepted:receipt',
        'attempted>accepted:reconciled', 'attempted>delivered:late_answer',
        'attempted>delivered:provider_accepted', 'attempted>delivered:receipt',
        'attempted>delivered:reconciled', 'attempted>queued:not_accepted',
        'attempted>failed:late_answer', 'attempted>failed:not_accepted_no_time_left',
        'attempted>failed:receipt', 'attempted>failed:reconciled', 'attempted>failed:refused',
        'attempted>unknown:connection_lost', 'attempted>unknown:gateway_error',
        'attempted>unknown:timeout', 'attempted>unknown:unreadable_answer',
        'attempted>unknown:worker_lost', 'attempted>canceled:canceled_before_retry',
        'unknown>accepted:late_answer', 'unknown>accepted:receipt',
        'unknown>accepted:reconciled', 'unknown>delivered:late_answer',
        'unknown>delivered:receipt', 'unknown>delivered:reconciled',
        'unknown>failed:absent_no_time_left', 'unknown>failed:late_answer',
        'unknown>failed:not_accepted_no_time_left', 'unknown>failed:receipt',
        'unknown>failed:reconciled', 'unknown>attempted:replay_started',
        'unknown>queued:not_accepted', 'unknown>queued:reconciled_absent',
        'unknown>expired:unknown_at_expiry', 'unknown>canceled:canceled_before_retry',
        'accepted>delivered:late_answer', 'accepted>delivered:receipt',
        'accepted>delivered:reconciled', 'accepted>failed:late_answer',
        'accepted>failed:receipt', 'accepted>failed:reconciled',
        'accepted>expired:unconfirmed_at_expiry', 'delivered>failed:bounced_after_delivery'
    ] $$;

CREATE FUNCTION notifier.permitted_pairs() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT ARRAY[
        '>canceled', '>expired', '>queued', '>standby', '>suppressed', 'accepted>delivered',
        'accepted>expired', 'accepted>failed', 'attempted>accepted', 'attempted>canceled',
        'attempted>delivered', 'attempted>failed', 'attempted>queued', 'attempted>unknown',
        'claimed>accepted', 'claimed>attempted', 'claimed>canceled', 'claimed>delivered',
        'claimed>expired', 'claimed>failed', 'claimed>queued', 'claimed>standby',
        'claimed>suppressed', 'delivered>failed', 'queued>accepted', 'queued>canceled',
        'queued>claimed', 'queued>delivered', 'queued>expired', 'queued>failed',
        'queued>standby', 'queued>suppressed', 'standby>accepted', 'standby>canceled',
        'standby>delivered', 'standby>expired', 'standby>failed', 'standby>queued',
        'standby>suppressed', 'unknown>accepted', 'unknown>attempted', 'unknown>canceled',
        'unknown>delivered', 'unknown>expired', 'unknown>failed', 'unknown>queued'
    ] $$;

-- A check that comes to NULL passes, so an end that is missing is spelled out.
-- The table was made in this migration and is empty.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE notifier.transition ADD CONSTRAINT transition_is_permitted CHECK (
    from_state IS NOT DISTINCT FROM to_state
    OR (coalesce(from_state, '') || '>' || coalesce(to_state, '') || ':' || reason)
        = ANY (notifier.permitted_moves()));

CREATE FUNCTION notifier.guard_delivery_state() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT (OLD.state || '>' || NEW.state) = ANY (notifier.permitted_pairs()) THEN
        RAISE EXCEPTION 'a delivery cannot go from % to %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER delivery_state_guard BEFORE UPDATE ON notifier.delivery
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION notifier.guard_delivery_state();

CREATE FUNCTION notifier.guard_delivery_birth() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'a delivery cannot begin as %', NEW.state USING ERRCODE = 'check_violation';
END
$$;
CREATE TRIGGER delivery_birth_guard BEFORE INSERT ON notifier.delivery
    FOR EACH ROW WHEN (NEW.state NOT IN ('queued', 'standby', 'suppressed', 'expired', 'canceled'))
    EXECUTE FUNCTION notifier.guard_delivery_birth();

-- The state of a notice: the same rule as notifier/domain/notice_state.py, first match wins.
CREATE FUNCTION notifier.notice_state(
    email text, email_final boolean, sms text, sms_final boolean,
    sms_is_fallback boolean, canceled boolean
) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE
        WHEN email = 'delivered' OR sms = 'delivered'
            OR (email = 'accepted' AND email_final) OR (sms = 'accepted' AND sms_final)
            THEN 'complete'
        WHEN canceled THEN 'canceled'
        WHEN sms IN ('queued', 'claimed', 'attempted', 'unknown', 'accepted')
            AND (sms_is_fallback
                OR email NOT IN ('queued', 'claimed', 'attempted', 'unknown', 'accepted'))
            THEN 'text_pending'
        WHEN email IN ('queued', 'claimed', 'attempted', 'unknown', 'accepted') THEN 'email_pending'
        WHEN email = 'standby' THEN 'email_pending'
        WHEN sms = 'standby' THEN 'text_pending'
        WHEN email = 'expired' OR sms = 'expired' THEN 'expired'
        WHEN email = 'failed' OR sms = 'failed' THEN 'failed'
        ELSE 'suppressed'
    END
    $$;
