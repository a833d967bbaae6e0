"""Spares a browser what it shows already: a refresh that would change nothing is a 204.

A fragment's version is a digest of it without the instant it was read at. The browser sends the
version that it shows; where that is still the one, it is told the new instant and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from notifier.web.people.visit import Form, wanted

if TYPE_CHECKING:
    from flask import Request, Response

VERSION: Final = "X-Version"
SEEN: Final = "X-If-Version"
AS_OF: Final = "X-As-Of"
_INSTANT: Final = re.compile(r' data-as-of="([^"]*)"|as of <time[^>]*>[^<]*</time>')
"""Where a fragment says when it was read."""


def spare(request: Request, response: Response) -> Response:
    """Name the version of a fragment; empty the answer where the browser has that one."""
    if wanted() is not Form.FRAGMENT or response.status_code != 200 or request.method != "GET":
        return response
    text = response.get_data(as_text=True)
    version = hashlib.sha256(_INSTANT.sub("", text).encode()).hexdigest()[:16]
    response.headers[VERSION] = version
    read_at = next((each[1] for each in _INSTANT.finditer(text) if each[1]), None)
    if request.headers.get(SEEN) == version and read_at is not None:
        response.status_code = 204
        response.set_data(b"")
        response.headers[AS_OF] = quote(read_at)
    return response
