"""Why a link request got no answer that can be used: a closed vocabulary, and its words.

A fault stands as `detail` beside `link_unavailable` on the trail, in the log and as a label of
a metric. It is no provider's word (`Detail`) and no failure of a channel: the notice goes back
to the queue and is asked about again. Nothing of an answer's content is in it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class LinkFault(StrEnum):
    """What was wrong with the answer, or with getting one; no name is also a `Detail`'s."""

    # no answer
    NO_CONNECTION = "no_connection"
    TLS_FAILED = "tls_failed"
    LINE_BROKE = "line_broke"
    NO_ANSWER_IN_TIME = "no_answer_in_time"
    NOT_HTTP = "not_http"
    # a status that stands for no answer of the contract
    HTTP_2XX = "http_2xx"
    HTTP_3XX = "http_3xx"
    HTTP_400 = "http_400"
    HTTP_401 = "http_401"
    HTTP_403 = "http_403"
    HTTP_404 = "http_404"
    HTTP_405 = "http_405"
    HTTP_409 = "http_409"
    HTTP_410 = "http_410"
    HTTP_415 = "http_415"
    HTTP_422 = "http_422"
    HTTP_429 = "http_429"
    HTTP_4XX = "http_4xx"
    HTTP_500 = "http_500"
    HTTP_502 = "http_502"
    HTTP_503 = "http_503"
    HTTP_504 = "http_504"
    HTTP_5XX = "http_5xx"
    HTTP_OTHER = "http_other"
    # an answer that cannot be read or used
    ANSWER_ENCODED = "answer_encoded"
    ANSWER_TOO_LARGE = "answer_too_large"
    NOT_JSON = "not_json"
    NO_DESTINATION_FIELD = "no_destination_field"
    NO_RESET_URL_FIELD = "no_reset_url_field"
    RESET_URL_NOT_HTTPS = "reset_url_not_https"
    RESET_URL_UNUSABLE = "reset_url_unusable"
    EXPIRES_AT_UNREADABLE = "expires_at_unreadable"


_F = LinkFault


def of_status(status: int) -> LinkFault:
    """The fault of an answer whose status says nothing of the contract's: exact, or its class."""
    known = {str(each) for each in LinkFault}
    for name in (f"http_{status}", f"http_{status // 100}xx"):
        if name in known:
            return LinkFault(name)
    return LinkFault.HTTP_OTHER


_ASKED: Final = "when it was asked for the link"

LINK_FAULT_WORDS: Final[dict[LinkFault, str]] = {
    _F.NO_CONNECTION: "the auth service could not be reached for the link",
    _F.TLS_FAILED: "no trusted encrypted line to the auth service came about",
    _F.LINE_BROKE: f"the line to the auth service broke {_ASKED}",
    _F.NO_ANSWER_IN_TIME: f"the auth service did not answer in time {_ASKED}",
    _F.NOT_HTTP: f"the auth service gave no whole HTTP answer {_ASKED}",
    **{
        fault: f"the auth service answered {fault.removeprefix('http_')} {_ASKED}"
        for fault in LinkFault
        if fault.removeprefix("http_").isdigit()
    },
    _F.HTTP_404: f"the auth service answered 404 without a reason that we know {_ASKED}",
    _F.HTTP_410: f"the auth service answered 410 without a reason that we know {_ASKED}",
    _F.HTTP_2XX: f"the auth service answered with another success than 200 {_ASKED}",
    _F.HTTP_3XX: f"the auth service answered with a redirect {_ASKED}, and none is followed",
    _F.HTTP_4XX: f"the auth service refused the request {_ASKED}, with another 4xx",
    _F.HTTP_5XX: f"the auth service was in trouble {_ASKED}, with another 5xx",
    _F.HTTP_OTHER: f"the auth service answered with an unknown status {_ASKED}",
    _F.ANSWER_ENCODED: "the auth service's answer about the link was compressed",
    _F.ANSWER_TOO_LARGE: "the auth service's answer about the link was too large",
    _F.NOT_JSON: "the auth service's answer about the link was no JSON object",
    _F.NO_DESTINATION_FIELD: "the auth service's answer had no destination",
    _F.NO_RESET_URL_FIELD: "the auth service's answer had no reset_url",
    _F.RESET_URL_NOT_HTTPS: "the auth service's reset_url was not https",
    _F.RESET_URL_UNUSABLE: "the auth service's reset_url was no whole, plain address",
    _F.EXPIRES_AT_UNREADABLE: "the auth service's expires_at was no time with an offset",
}
"""Each a clause that a sentence can begin with."""


def words_of(detail: str | None) -> str | None:
    """The words for a trail row's detail; None where it is no link fault that we know."""
    return LINK_FAULT_WORDS[LinkFault(detail)] if detail in set(LinkFault) else None
