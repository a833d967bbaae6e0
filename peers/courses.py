"""What becomes of a message at the stand-in of an HTTP provider.

A course is everything that can be different about one message: whether it is refused, whether
it is kept, how the request is answered, what happens to it afterwards, and how much of that
the provider tells. Each stand-in has a table of courses in its provider's words; a recipient
asks for one by its name (see `peers.fates` for addresses, `peers.twilio_words` for numbers).
A name may end in seconds: `late-20`, `queued-5`, `unseen-3`, `slow-4`.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from peers.web import Manner

SECONDS = re.compile(r"(.+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that proves nothing was kept. `code` None: the words are not the provider's."""

    status: int
    code: int | None = None
    message: str = ""
    retry_after_s: int | None = None
    times: int | None = None
    """How often it is given; after that the message takes the normal course."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens to a kept message, `after_s` seconds after it was kept."""

    word: str
    """In the provider's own vocabulary."""
    after_s: float = 0.0
    code: int | None = None
    told: int = 1
    """How many callbacks tell of it; without any only a look or a poll shows it."""
    told_late_s: float = 0.0
    stranger: bool = False
    """The callback is about a message that nobody ever sent."""
    note: str = ""
    """The receiving system's words, where the provider passes them on."""


@dataclass(frozen=True, slots=True)
class Course:
    """All that is particular about one message."""

    name: str
    steps: tuple[Step, ...] = ()
    refusal: Refusal | None = None
    kept: bool = True
    manner: Manner = Manner.ANSWER
    status: int | None = None
    """None: the provider's usual one."""
    raw: str | None = None
    """The exact body of the answer, for what is not the provider's JSON."""
    hold: bool = False
    """Keep, then stand still until released."""
    slow_s: float = 0.0
    told_first: bool = False
    """The callbacks come before the answer."""
    unseen_s: float = 0.0
    """For how long no look finds the message."""

    @property
    def answered(self) -> bool | None:
        """What the caller hears: yes, no, or nothing that can be understood."""
        if self.refusal is not None:
            return False if self.refusal.code is not None else None
        plain = self.manner is Manner.ANSWER and self.status is None and self.raw is None
        return True if plain else None


JUNK = "<html><body>It works!</body></html>"


def endings(steps: tuple[Step, ...], silent: tuple[Step, ...]) -> dict[str, Course]:
    """The courses that differ in the answer alone, with the steps that follow each."""
    courses = (
        Course("hang-after-accept", steps, manner=Manner.HANG),
        Course("drop-after-accept", steps, manner=Manner.DROP),
        Course("reset-after-accept", steps, manner=Manner.RESET),
        Course("error-after-accept", steps, status=500, raw="Internal Server Error"),
        Course("truncate", steps, manner=Manner.TRUNCATE),
        Course("junk", steps, raw=JUNK),
        Course("lost-after-accept", kept=False, manner=Manner.DROP),
        Course("hang-and-silent", silent, manner=Manner.HANG),
        Course("unseen", silent, manner=Manner.HANG, unseen_s=2.0),
        Course("hold", steps, hold=True),
        Course("slow", steps, slow_s=2.0),
        Course("callback-first", steps, told_first=True),
        Course("unavailable", refusal=Refusal(503)),
        Course("proxy-page", refusal=Refusal(403)),
    )
    return {course.name: course for course in courses}


ALIASES = {
    "hang-after-dot": "hang-after-accept",
    "drop-after-dot": "drop-after-accept",
    "reset-after-dot": "reset-after-accept",
    "garbage-after-dot": "junk",
    "lost-after-dot": "lost-after-accept",
    "busy-after-dot": "unavailable",
    "refuse-rcpt": "bad-address",
    "disabled": "inactive",
    "quota-exceeded": "mailbox-full",
}
"""What the fates of the SMTP stand-in are called here."""


def named(courses: Mapping[str, Course], word: str) -> Course | None:
    """The course of a word, of its alias, or of either followed by seconds."""
    found = courses.get(ALIASES.get(word, word))
    if found is not None:
        return found
    timed = SECONDS.fullmatch(word)
    course = timed and courses.get(ALIASES.get(timed[1], timed[1]))
    return _timed(course, float(timed[2])) if timed and course else None


def _timed(course: Course, seconds: float) -> Course:
    if course.unseen_s:
        return replace(course, unseen_s=seconds)
    if course.slow_s:
        return replace(course, slow_s=seconds)
    if any(step.told_late_s for step in course.steps):
        late = tuple(replace(step, told_late_s=seconds) for step in course.steps)
        return replace(course, steps=late)
    later = tuple(replace(step, after_s=step.after_s + seconds) for step in course.steps)
    return replace(course, steps=later)


@dataclass(frozen=True, slots=True)
class Rule:
    """A course asked for from outside: for one recipient or (None) all, so many times."""

    course: Course
    recipient: str | None = None
    times: int | None = None


class CourseScript:
    """The table, what recipients ask for, and the rules added from outside, which go first."""

    def __init__(self, courses: Mapping[str, Course], word_of: Callable[[str], str]) -> None:
        self._courses, self._word_of = courses, word_of
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._used: Counter[str] = Counter()

    def add(self, word: str, recipient: str | None, times: int | None) -> None:
        """Put a rule after the ones added earlier. ValueError for an unknown word."""
        course = named(self._courses, word)
        if course is None:
            message = f"no such fate: {word}"
            raise ValueError(message)
        with self._lock:
            self._rules.append(Rule(course, recipient, times))

    def clear(self) -> None:
        """Forget the added rules."""
        with self._lock:
            self._rules.clear()

    def course_for(self, recipient: str) -> Course:
        """The course to follow now, counted as used once."""
        with self._lock:
            wanted = self._added(recipient) or named(self._courses, self._word_of(recipient))
            normal = self._courses["deliver"]
            if wanted is None:
                return normal
            limit = wanted.refusal.times if wanted.refusal else None
            used = self._use(f"{wanted.name} {recipient}")
            return wanted if limit is None or used <= limit else normal

    def _added(self, recipient: str) -> Course | None:
        for place, rule in enumerate(self._rules):
            if rule.recipient in (None, recipient) and (
                rule.times is None or self._use(f"added {place}") <= rule.times
            ):
                return rule.course
        return None

    def _use(self, what: str) -> int:
        self._used[what] += 1
        return self._used[what]
