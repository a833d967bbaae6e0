"""What each setting is for, and what goes where it is not set: for the reference page."""

from __future__ import annotations

from typing import Final

MEANINGS: Final[dict[str, str]] = {
    "database_url": "The Postgres that keeps everything; several hosts are followed through a "
    "failover. The role owns the database and needs nothing more.",
    "data_dir": "Where the embedded Postgres lives, if that is used; several processes may share "
    "it.",
    "bind": "Where it listens.",
    "public_url": "Where providers' callbacks and people's links lead; pages answer under its "
    "host alone.",
    "proxy_hops": "How many proxies stand before it: so many entries of X-Forwarded-For and "
    "X-Forwarded-Proto are believed, counted from the end.",
    "ingest_secrets": "What signs events and cancels; all of them verify.",
    "admission_rate_per_s": "Above it, over all processes, events are answered 429 and come again.",
    "api_tokens": "The programs that may ask for a status, link tickets or read metrics.",
    "secret_key": "Signs the cookies of people who are signed in.",
    "fingerprint_key": "Keys the fingerprints of destinations and the digests by which a repeat "
    "is recognised. Never drop an old one: what it digested is not recognised any more.",
    "checkpoint_key": "Signs the trail's checkpoints, once an hour.",
    "link_url": "Where the auth service answers requests for a link.",
    "link_secret": "Signs those requests.",
    "email_providers": "Who sends emails: the first. Of the others callbacks are read.",
    "sms_providers": "Who sends texts: the first. Of the others callbacks are read.",
    "smtp_url": "Where mail is handed over.",
    "email_from": "Whom emails come from.",
    "twilio_account_sid": "Twilio's account.",
    "twilio_auth_token": "Twilio's password; it also proves the callbacks.",
    "twilio_from": "Whom texts come from.",
    "twilio_base_url": "Twilio's API, where it is another than the usual one.",
    "postmark_token": "Postmark's password.",
    "postmark_callback_password": "What Postmark's callbacks are known by.",
    "postmark_base_url": "Postmark's API, where it is another than the usual one.",
    "resend_api_key": "Resend's password; one with full access can be asked about outcomes.",
    "resend_webhook_secret": "Signs Resend's callbacks.",
    "resend_base_url": "Resend's API, where it is another than the usual one.",
    "policy_file": "Becomes the first policy revision of an empty database, and nothing later.",
    "oidc_issuer": "Who people sign in with, by OpenID Connect.",
    "oidc_client_id": "This product at the issuer.",
    "oidc_client_secret": "Its password there.",
    "oidc_role_claim": "What of a person's token tells the role.",
    "oidc_roles": "Which role a value of that claim gives.",
    "local_accounts": "Whether local accounts still sign in beside an issuer; each use alerts.",
    "alert_urls": "Who is told when an alert opens and when it is over.",
    "deadman_url": "Pinged while somebody judges the rules; its service pages when that ends.",
    "dkim_selectors": "The keys of the sender domains that are looked up beside SPF and DMARC.",
    "dns_resolver": "Who is asked about the sender domains.",
    "workers": "Threads of this process that send, shared between the channels; with 0 it only "
    "serves.",
}
"""By the name of the field."""

DEFAULTS: Final[dict[str, str]] = {
    "database_url": "an embedded Postgres in `NOTIFIER_DATA_DIR`",
    "public_url": "`http://` and `NOTIFIER_BIND`",
    "admission_rate_per_s": "`off`",
    "policy_file": "built-in values",
    "local_accounts": "`0`; without an issuer they sign in anyhow",
    "oidc_roles": "the claim has the role's own name",
    "dns_resolver": "the machine's own",
    "checkpoint_key": "none: no checkpoints are made",
}
"""Where a default says more than its value."""
