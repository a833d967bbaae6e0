-- What is written once. Tables that only grow, and the columns of the others that no step of the
-- product changes: keys, what came in, what was decided on arrival, who did it and why. A trigger
-- of a list of columns costs nothing to a statement that names none of them.
-- Roles (0001_roles.sql) are given no more than these triggers leave.

CREATE TRIGGER ticket_link_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON notifier.ticket_link
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();
CREATE TRIGGER template_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON notifier.template_revision
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_change();

CREATE FUNCTION notifier.refuse_rewrite() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'what % holds here is never rewritten', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

-- These go after their time, and change in no other way.
CREATE TRIGGER reset_event_never_rewritten BEFORE UPDATE OR TRUNCATE ON notifier.reset_event
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();
CREATE TRIGGER alert_note_never_rewritten BEFORE UPDATE OR TRUNCATE ON notifier.alert_note
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();

CREATE TRIGGER notice_never_rewritten BEFORE UPDATE OF
    notice_id, event_id, reset_request_id, account_id, correlation_id, template_id,
    template_revision, locale_used, policy_revision, mode, created_at
    ON notifier.notice
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();
CREATE TRIGGER delivery_never_rewritten BEFORE UPDATE OF notice_id, channel, is_fallback
    ON notifier.delivery
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();
CREATE TRIGGER attempt_never_rewritten BEFORE UPDATE OF
    notice_id, channel, number, class, key, reference, provider, template_id, template_revision,
    message_digest, owner, fence, started_at
    ON notifier.attempt
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();
CREATE TRIGGER receipt_never_rewritten BEFORE UPDATE OF
    receipt_id, provider, account, identity, reference, provider_message_id, source, status,
    detail, provider_code, final, occurred_at, received_at
    ON notifier.receipt
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();
CREATE TRIGGER halt_never_rewritten BEFORE UPDATE OF
    halt_id, scope, reason, engaged_by, engaged_at
    ON notifier.halt
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();
CREATE TRIGGER person_never_rewritten BEFORE UPDATE OF
    person_id, name, source, issuer, subject, created_at
    ON notifier.person
    FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_rewrite();
