-- Three roles where the connecting role may create them: the owner (whoever migrates), the
-- application, a reader. Neither of the latter two can rewrite the trail even without triggers.
-- Roles belong to the cluster, so they may be there already.

DO $$
DECLARE
    guarded record;
BEGIN
    IF (SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        -- Another database of the cluster may be migrated at this moment.
        BEGIN
            CREATE ROLE notifier_app NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
        BEGIN
            CREATE ROLE notifier_reader NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
        GRANT USAGE ON SCHEMA notifier TO notifier_app, notifier_reader;
        GRANT USAGE, CREATE ON SCHEMA scheduler TO notifier_app;
        GRANT SELECT ON ALL TABLES IN SCHEMA notifier TO notifier_app, notifier_reader;
        GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA notifier TO notifier_app;
        REVOKE UPDATE, DELETE ON notifier.transition, notifier.policy_revision,
            notifier.read_audit FROM notifier_app;
        REVOKE UPDATE, DELETE ON notifier.checkpoint, notifier.checkpoint_head FROM notifier_app;
        REVOKE UPDATE, DELETE ON notifier.admission, notifier.ticket_link,
            notifier.template_revision FROM notifier_app;
        REVOKE DELETE ON notifier.notice, notifier.delivery, notifier.attempt, notifier.halt,
            notifier.person, notifier.alert_note FROM notifier_app;
        -- The columns that a trigger leaves (0001_never_rewritten.sql), and no others.
        FOR guarded IN
            SELECT t.tgrelid::regclass AS relation,
                   string_agg(quote_ident(a.attname), ', ')
                       FILTER (WHERE NOT a.attnum = ANY (t.tgattr) AND t.tgattr::text <> '')
                       AS columns
              FROM pg_trigger t JOIN pg_attribute a ON a.attrelid = t.tgrelid
             WHERE t.tgfoid = 'notifier.refuse_rewrite'::regproc
               AND a.attnum > 0 AND NOT a.attisdropped
             GROUP BY t.tgrelid, t.tgname
        LOOP
            EXECUTE format('REVOKE UPDATE ON %s FROM notifier_app', guarded.relation);
            IF guarded.columns IS NOT NULL THEN
                EXECUTE format('GRANT UPDATE (%s) ON %s TO notifier_app',
                               guarded.columns, guarded.relation);
            END IF;
        END LOOP;
        REVOKE SELECT ON notifier.person, notifier.sign_in_link, notifier.session,
            notifier.search_token, notifier.sign_in_start FROM notifier_reader;
    END IF;
END
$$;
