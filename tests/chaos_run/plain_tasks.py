"""What users have today: a queue with retries around the same calls, as its documents show it.

A mail is tried again on any error; where it never goes through, the text takes its place. A
job whose worker died is found by the worker's missing heartbeat and run again. Nothing here is
made worse than a careful team would have it: a repeated event is kept out of the queue by a
queueing lock, a reset that has ended (410, 404) is not sent, every call has a time limit.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from functools import cache
from typing import Any

import httpx2
from procrastinate import App, JobContext, RetryStrategy
from procrastinate.connector import BaseConnector

from notifier.signatures import parse_secret, signed_headers

RETRIES = 3
RETRY = RetryStrategy(max_attempts=RETRIES, wait=1)
CALL_S = 2.0
LINK_S = 3.0
HEARTBEAT_S = 1.0
STALLED_S = 6.0
GONE = {404, 410}


def build(connector: BaseConnector) -> App:
    """The queue with its tasks; for those who put work in and for those who do it."""
    app = App(connector=connector)

    @app.task(name="mail", retry=RETRY, pass_context=True)
    async def mail(context: JobContext, /, **reset: Any) -> None:
        try:
            await send_mail(reset)
        except Exception:
            if context.job.attempts >= RETRIES:  # its last one
                await text.configure(queueing_lock=f"text {reset['event_id']}").defer_async(**reset)
            raise

    @app.task(name="text", retry=RETRY)
    async def text(**reset: Any) -> None:
        await send_text(reset)

    @app.periodic(cron="* * * * * */3")
    @app.task(queueing_lock="retry_stalled_jobs", priority=100)
    async def retry_stalled_jobs(timestamp: int) -> None:
        stalled = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_S)
        for job in stalled:
            await app.job_manager.retry_job(job)

    return app


@cache
def client() -> httpx2.AsyncClient:
    """One for the whole process, which keeps its connections."""
    return httpx2.AsyncClient()


async def send_mail(reset: dict[str, Any]) -> None:
    """One mail through Postmark; raises on anything but a yes."""
    link = await ask_for_link(reset, "email")
    if link is None:
        return
    document = {
        "From": "no-reply@example.test",
        "To": link["destination"],
        "Subject": "Reset your password",
        "TextBody": f"Somebody asked to reset your password: {link['reset_url']}",
        "Metadata": {"reference": reset["event_id"]},
    }
    token = {"X-Postmark-Server-Token": os.environ["PLAIN_POSTMARK_TOKEN"]}
    url = f"{os.environ['PLAIN_POSTMARK_URL']}/email"
    answer = await client().post(url, json=document, headers=token, timeout=CALL_S)
    answer.raise_for_status()


async def send_text(reset: dict[str, Any]) -> None:
    """One text through Twilio; raises on anything but a yes."""
    link = await ask_for_link(reset, "sms")
    if link is None:
        return
    account, token = os.environ["PLAIN_TWILIO_ACCOUNT"], os.environ["PLAIN_TWILIO_TOKEN"]
    url = f"{os.environ['PLAIN_TWILIO_URL']}/2010-04-01/Accounts/{account}/Messages.json"
    body = f"Reset your password: {link['reset_url']}"
    form = {"To": link["destination"], "From": "+15005550006", "Body": body}
    answer = await client().post(url, data=form, auth=(account, token), timeout=CALL_S)
    answer.raise_for_status()


async def ask_for_link(reset: dict[str, Any], channel: str) -> dict[str, Any] | None:
    """Link and destination; None where the reset has ended or has no such destination."""
    names = ("reset_request_id", "event_id")
    asked = {**{name: reset[name] for name in names}, "channel": channel, "purpose": "send"}
    body = json.dumps(asked).encode()
    key = parse_secret(os.environ["PLAIN_LINK_SECRET"])
    headers = signed_headers(key, f"msg_{uuid.uuid4().hex}", int(time.time()), body)
    url = os.environ["PLAIN_LINK_URL"]
    answer = await client().post(url, content=body, headers=headers, timeout=LINK_S)
    if answer.status_code in GONE:
        return None
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found
