"""Ways to the issuer that are under way: each may come back once, to the browser it began in.

The browser's secret stands in its cookie. What proves to the issuer that the same browser comes
back (PKCE, RFC 7636) and what ties the token to this sign-in (the nonce) are made from it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from notifier.accounts.sessions import digest_of

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

LIFE: Final = timedelta(minutes=10)
"""How long a person may take at the issuer."""


@dataclass(frozen=True, slots=True)
class Start:
    """The three words of one way to the issuer."""

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


def of_state(state: str, browser: str) -> Start:
    """The words that belong to a state in this browser."""
    return Start(state, _word(browser, "nonce", state), _word(browser, "verifier", state))


def begin(connection: PooledConnection, browser: str, issuer: str, where: str) -> Start:
    """Write down that this browser goes to the issuer; `where` is a path of ours."""
    state = secrets.token_urlsafe(32)
    connection.execute(
        """
        WITH clock AS (SELECT db_now() AS now),
        over AS (DELETE FROM sign_in_start USING clock WHERE expires_at < clock.now)
        INSERT INTO sign_in_start (state_digest, browser_digest, issuer, next_path, expires_at)
        SELECT %(state)s, %(browser)s, %(issuer)s, %(where)s, clock.now + %(life)s FROM clock
        """,
        {
            "state": digest_of(state),
            "browser": digest_of(browser),
            "issuer": issuer,
            "where": where,
            "life": LIFE,
        },
    )
    return of_state(state, browser)


def take(connection: PooledConnection, state: str, browser: str, issuer: str) -> str | None:
    """Where the person wanted to go; None unless this very way waits. Of two racing, one wins."""
    row = connection.execute(
        """
        DELETE FROM sign_in_start
         WHERE state_digest = %s AND browser_digest = %s AND issuer = %s
           AND expires_at > db_now()
        RETURNING next_path
        """,
        [digest_of(state), digest_of(browser), issuer],
    ).fetchone()
    return str(row["next_path"]) if row else None


def _word(browser: str, what: str, state: str) -> str:
    return hmac.new(browser.encode(), f"{what} {state}".encode(), hashlib.sha256).hexdigest()
