"""What each value of a policy is called, what it means, and in which unit it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Words:
    """A value's label, its meaning in a sentence, and its unit ("" for none)."""

    label: str
    meaning: str
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Group:
    """Values that are thought about together, by name."""

    key: str
    title: str
    meaning: str
    values: Mapping[str, Words]


_LIFE: Final = "share of the life"
_SHARE: Final = "share, 0 to 1"

GROUPS: Final = (
    Group(
        "time", "Time of a token",
        "When the last start may be, and when a text takes over from an email.",
        {
            "safety_margin_s/email": Words(
                "Email: safety margin",
                "Nothing starts on email when less than this is left before expiry: an email has "
                "to arrive and be read while its link still works.",
            ),
            "safety_margin_s/sms": Words(
                "Text: safety margin",
                "Nothing starts by text when less than this is left before expiry.",
            ),
            "fallback_reserve/share": Words(
                "Fallback reserve", "This part of a token's life is kept free for the text.", _LIFE
            ),
            "fallback_reserve/floor_s": Words(
                "Fallback reserve, at least", "For tokens with a short life."
            ),
            "fallback_reserve/cap_s": Words(
                "Fallback reserve, at most", "For tokens with a long life."
            ),
            "observation_window/share": Words(
                "Observation window",
                "For this part of its life an email is watched before a text is thought of.", _LIFE,
            ),
            "observation_window/floor_s": Words(
                "Observation window, at least", "For tokens with a short life."
            ),
            "observation_window/cap_s": Words(
                "Observation window, at most", "For tokens with a long life."
            ),
            "max_life_s": Words(
                "Longest life of a token", "An event that asks for more is refused."
            ),
        },
    ),
    Group(
        "doubt", "When it is not sure that an email arrived",
        "What happens at the fallback time.",
        {
            "on_unknown": Words(
                "Nobody knows whether the email left",
                "Send the text all the same, or hold it: held, no customer gets two messages, and "
                "some get none.", "",
            ),
            "on_unconfirmed": Words(
                "The email was accepted, and no delivery is reported",
                "Send the text all the same, or hold it.", "",
            ),
            "relay_acceptance": Words(
                "A mail server that never reports deliveries",
                "Take its acceptance as the end, or treat it as not confirmed.", "",
            ),
            "absence_conclusive": Words(
                "Providers whose “no such message” is proof",
                "Only these may turn an unknown call into one that was not sent. Separate names "
                "with commas: smtp, postmark, resend, twilio.", "names",
            ),
            "settle_s": Words(
                "A provider is asked no earlier than",
                "So long after an unknown call its answer “no such message” may mean anything.",
            ),
        },
    ),
    Group(
        "pace", "Tries, calls and sweeps",
        "How often something is looked at, and how long a call may take.",
        {
            "retry_backoff_s": Words(
                "Wait before each further try",
                "After a try that was surely not accepted. Separate with commas; the last one "
                "repeats until the stop time.", "s, a list",
            ),
            "retry_jitter": Words(
                "Spread of these waits", "Each wait is longer or shorter by up to this part.",
                _SHARE,
            ),
            "reconcile_after_s": Words(
                "Looks at an unknown outcome",
                "Wait before each look at the provider. Separate with commas; the last one "
                "repeats.", "s, a list",
            ),
            "poll_every_s": Words(
                "Looks at an accepted message", "Time between two looks at the provider."
            ),
            "call_timeout_s/email": Words(
                "Email: time limit of a call",
                "For a mail server: of every phase but the final reply.",
            ),
            "call_timeout_s/sms": Words("Text: time limit of a call", "To the provider."),
            "final_reply_timeout_s/email": Words(
                "Email: time limit of the final reply",
                "After the whole mail was handed to a mail server. Cutting it short makes "
                "unknown outcomes.",
            ),
            "lease_s": Words(
                "Lease of claimed work",
                "A worker that is not heard of for so long loses what it claimed.",
            ),
            "sweep_every_s": Words("Sweeps run every", "Expiry, fallback, rescue and the like."),
            "provider_pause_s": Words(
                "Pause of a provider in trouble",
                "First pause after an answer that says: not now. A provider may name its own.",
            ),
        },
    ),
    Group(
        "limits", "Who may get what",
        "Decided once for each event, when it is admitted.",
        {
            "account_cap_per_hour": Words(
                "Notices for one account within an hour",
                "Further ones are admitted and suppressed. 0: no limit.", "notices",
            ),
            "require_consent/email": Words(
                "Email needs consent", "Yes: the event must say that there is consent.", ""
            ),
            "require_consent/sms": Words(
                "Text needs consent", "Yes: the event must say that there is consent.", ""
            ),
            "regions/sms": Words(
                "Countries that may be texted",
                "any, or countries in two capitals separated by commas: GB, DE. With a list, an "
                "event that names no country gets no text.", "countries",
            ),
            "parallel_reason_codes": Words(
                "Reasons that permit both channels at once",
                "Reason codes of events, separated by commas. Empty: never.", "codes",
            ),
        },
    ),
    Group(
        "alert", "Alerts: when somebody is paged",
        "Shares of the life are parts of a token's life, so that one table fits short and long "
        "tokens. Each alert tells its limit and links to this page.",
        {
            "alert/life_s": Words(
                "Life of a token for these limits", "0: learnt from the events."
            ),
            "alert/hold_share": Words(
                "A crossing must stand for", "Before anybody is told.", _LIFE
            ),
            "alert/close_share": Words(
                "An alert ends after it was clear for", "One trouble that comes and goes is one "
                "alert.", _LIFE,
            ),
            "alert/chance": Words(
                "Chance of a false alarm",
                "A rate is told when its baseline would give so many less often than this.",
                "probability",
            ),
            "alert/queue_age_share": Words("Ready work waits", "Longer than this.", _LIFE),
            "alert/queue_age_s": Words("Ready work waits, at most", "The cap of the share."),
            "alert/lapsed_lease_share": Words(
                "Claimed work makes no progress for", "Its lease ended and nobody took it back.",
                _LIFE,
            ),
            "alert/scheduler_silent_share": Words("A sweep stands still for", "", _LIFE),
            "alert/scheduler_silent_s": Words(
                "A sweep stands still, at most", "The cap of the share."
            ),
            "alert/database_silent_share": Words(
                "The database is out of reach for", "Each process tells by itself.", _LIFE
            ),
            "alert/provider_silent_share": Words(
                "A provider is silent for", "It accepts, and reports nothing.", _LIFE
            ),
            "alert/provider_silent_accepted": Words(
                "A provider is silent about", "At least so many messages.", "messages"
            ),
            "alert/callback_refusals_per_5_min": Words(
                "Callbacks refused within 5 minutes", "", "callbacks"
            ),
            "alert/expired_unsent_per_15_min": Words(
                "Notices expired within 15 minutes",
                "Where the incident page marks the first crossing.", "notices",
            ),
            "alert/expired_baseline": Words(
                "Expired: what is usual", "Share of the notices created.", _SHARE
            ),
            "alert/unknown_baseline": Words(
                "Unknown outcomes: what is usual", "Share of the calls.", _SHARE
            ),
            "alert/unknown_share": Words("Unknown outcomes: the limit", "", _SHARE),
            "alert/failure_baseline": Words(
                "Failed sends: what is usual", "Share of the calls.", _SHARE
            ),
            "alert/failure_share": Words("Failed sends: the limit", "", _SHARE),
            "alert/avoidable_baseline": Words(
                "Texts that nobody needed: what is usual", "Share of the fallback texts.", _SHARE
            ),
            "alert/avoidable_share": Words("Texts that nobody needed: the limit", "", _SHARE),
            "alert/rescue_baseline": Words(
                "Work taken back from workers: what is usual", "Share of the starts.", _SHARE
            ),
            "alert/rescues_at_least": Words(
                "Work taken back, at least", "Fewer are never told.", "rescues"
            ),
            "alert/unmapped_per_hour": Words(
                "Unknown words of a provider within an hour", "", "words"
            ),
            "alert/unreadable_per_hour": Words(
                "Unreadable callbacks within an hour", "", "callbacks"
            ),
            "alert/checkpoint_age_s": Words("Age of the newest checkpoint of the trail", ""),
            "alert/pending_open": Words("Home: pending turns near", "", "notices"),
            "alert/unknown_open": Words("Home: unknown turns near", "", "deliveries"),
            "alert/failures_per_15_min": Words(
                "Home: channel failures turn near", "", "failures"
            ),
            "alert/unknown_age_s": Words(
                "Age of an unknown outcome", "Kept with the policy; nothing reads it yet."
            ),
        },
    ),
    Group(
        "retention", "How long things are kept",
        "A shorter time erases what is older, and that cannot be undone.",
        {
            "retention/contact_days": Words(
                "Masked destinations and their fingerprints", "", "days"
            ),
            "retention/rollup_days": Words("Counts by the minute", "", "days"),
            "retention/detail_days": Words(
                "Details of notices",
                "The event as it was sent, and what providers told. Attempts stay with the trail.",
                "days",
            ),
            "retention/trail_days": Words(
                "Alerts that have ended",
                "Erased with their notes. The trail itself is kept, whatever is set here.",
                "days",
            ),
        },
    ),
)  # fmt: skip
"""Every value of a policy, in the order of the page."""

WORDS: Final[Mapping[str, Words]] = {
    name: words for group in GROUPS for name, words in group.values.items()
}

CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "on_unknown": {"send": "Send the text", "hold": "Hold the text"},
    "on_unconfirmed": {"send": "Send the text", "hold": "Hold the text"},
    "relay_acceptance": {"final": "Its acceptance is the end", "unconfirmed": "Not confirmed"},
}

SHORT_UNITS: Final = frozenset({words.unit for words in WORDS.values()}) - {
    "", "names", "countries", "codes", "s, a list",
}  # fmt: skip
"""Units of values that are one number."""

YES_NO: Final = {"yes": "Yes", "no": "No, it may be absent"}


def words_of(name: str) -> Words:
    """The words for a value; for one that the product does not know, its name."""
    return WORDS.get(name) or Words(name.replace("_", " ").replace("/", ": "), "", "")


def told(value: object) -> str:
    """A value as it is written in the form and read in a comparison."""
    match value:
        case None:
            return "not set"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(told, value))
        case float():
            return f"{value:.15g}"
        case _:
            return str(value)
