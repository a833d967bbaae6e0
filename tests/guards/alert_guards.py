"""The guards of an alert that stands: by which limit it ends, and which one people were told."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

EPISODES = "notifier/signals/episodes.py"
AT_LIMITS = "tests/signals/test_kept_limits.py::"

ALERT_GUARDS: tuple[Guard, ...] = (
    Guard(
        "an open alert is judged for the life that it opened with",
        "P11",
        "it is told as over because the yardstick moved, and nothing got better",
        Replaced(
            EPISODES, 'if each.state == "open" and each.life_s != life_s:', "if not each.state:"
        ),
        f"{AT_LIMITS}test_an_open_alert_keeps_the_limit_that_was_told_when_the_learnt_life_grows",
    ),
    Guard(
        "no alert is over while the limit by now is crossed",
        "P11",
        "its end is told, and in the same breath the same alert anew",
        Replaced(EPISODES, "if by_now is None or by_now.level is not Level.ABOVE:", "if True:"),
        f"{AT_LIMITS}test_an_open_alert_is_not_over_while_the_limit_by_now_is_crossed",
    ),
    Guard(
        "an open alert's limit is the one that was told",
        "P12",
        "the page of an alert names another limit than the one that somebody was woken with",
        Replaced(
            "notifier/store/alerts.py",
            "threshold = CASE e.state WHEN 'open' THEN e.threshold ELSE excluded.threshold END",
            "threshold = excluded.threshold",
        ),
        f"{AT_LIMITS}"
        "test_a_limit_that_was_changed_by_hand_holds_at_once_and_is_told_beside_the_old_one[tighter]",
    ),
)
