"""Who may do what. Views ask for a permission, never for a role's name.

The role of a session is read again on every request, so a change takes effect at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Permission(StrEnum):
    """One thing that a person may be allowed to see or do."""

    LOOK_UP = "look_up"
    """Find a notice by id or by destination."""
    VIEW_NOTICE = "view_notice"
    VIEW_LISTS = "view_lists"
    """Pending, unknown, expired: the rows and their JSON and CSV twins."""
    VIEW_HALTS = "view_halts"
    VIEW_SYSTEM = "view_system"
    VIEW_POLICY = "view_policy"
    CHANGE_POLICY = "change_policy"
    """Keep a new policy revision: whoever is on call may have to at night; it is never undone."""
    VIEW_ALERTS = "view_alerts"
    """The alerts, their review and their runbooks."""
    ANSWER_ALERTS = "answer_alerts"
    """Acknowledge an alert, write beside it, and review what it led to."""
    SEE_HOSTS = "see_hosts"
    """Host names and process ids on the system page."""
    SEE_FINGERPRINTS = "see_fingerprints"
    SEE_PROVIDER_CODES = "see_provider_codes"
    """The provider's own raw code beside the normalised word."""
    LINK_TICKETS = "link_tickets"
    ACT_ON_NOTICES = "act_on_notices"
    """Ask a provider now, add evidence to an unknown outcome, stop a notice; never send."""
    CHECK_SENDERS = "check_senders"
    """Have the DNS records of a sender domain looked at now."""
    STOP_SENDING = "stop_sending"
    RESUME_SENDING = "resume_sending"
    EXPORT = "export"
    """Take out a whole list as a file, masked as it is on screen."""
    EXPORT_TRAIL = "export_trail"
    VIEW_AUDIT = "view_audit"
    """Who looked at what, and everybody's exports."""
    MANAGE_PEOPLE = "manage_people"


class Role(StrEnum):
    """A named set of permissions; the words of the account table."""

    SUPPORT = "support"
    ON_CALL = "on-call"
    AUDITOR = "auditor"
    ADMIN = "admin"


_READING: Final = frozenset(
    {
        Permission.LOOK_UP,
        Permission.VIEW_NOTICE,
        Permission.VIEW_LISTS,
        Permission.VIEW_HALTS,
        Permission.VIEW_SYSTEM,
        Permission.VIEW_POLICY,
        Permission.VIEW_ALERTS,
    }
)

GRANTS: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.SUPPORT: _READING | {Permission.LINK_TICKETS},
    Role.ON_CALL: _READING
    | {
        Permission.LINK_TICKETS,
        Permission.ACT_ON_NOTICES,
        Permission.CHECK_SENDERS,
        Permission.EXPORT,
        Permission.SEE_HOSTS,
        Permission.SEE_FINGERPRINTS,
        Permission.SEE_PROVIDER_CODES,
        Permission.STOP_SENDING,
        Permission.CHANGE_POLICY,
        Permission.ANSWER_ALERTS,
    },
    Role.AUDITOR: _READING
    | {
        Permission.EXPORT,
        Permission.EXPORT_TRAIL,
        Permission.VIEW_AUDIT,
        Permission.SEE_HOSTS,
        Permission.SEE_FINGERPRINTS,
        Permission.SEE_PROVIDER_CODES,
    },
    Role.ADMIN: _READING
    | {
        Permission.LINK_TICKETS,
        Permission.ACT_ON_NOTICES,
        Permission.CHECK_SENDERS,
        Permission.EXPORT,
        Permission.SEE_HOSTS,
        Permission.SEE_PROVIDER_CODES,
        Permission.STOP_SENDING,
        Permission.CHANGE_POLICY,
        Permission.ANSWER_ALERTS,
        Permission.RESUME_SENDING,
        Permission.MANAGE_PEOPLE,
    },
}
"""Support reads every list and changes nothing but ticket links; an auditor changes nothing."""


def may(role: Role, permission: Permission) -> bool:
    """Whether this role carries the permission."""
    return permission in GRANTS[role]
