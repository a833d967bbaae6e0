"""The guards of answering at all, whoever else is at the doors."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

GATE = "notifier/web/gate.py"
SILENT_LINES = "notifier/silent_lines.py"
STALLED = "tests/story/test_stalled_senders.py::"
AT_GATE = "tests/web/test_gate.py::"
AT_LINES = "tests/unit/test_silent_lines.py::"

CROWD_GUARDS: tuple[Guard, ...] = (
    Guard(
        "what was not read before the gate is read nowhere",
        "P2",
        "six senders who stall stop admission, callbacks and every page",
        Replaced(
            GATE,
            'sent, environ["wsgi.input"] = environ.get("wsgi.input"), io.BytesIO()',
            'sent = environ.get("wsgi.input")',
        ),
        f"{AT_GATE}test_behind_the_gate_no_body_is_read_that_nobody_takes",
    ),
    Guard(
        "a body is read before a place is taken",
        "P2",
        "six senders who stall stop admission, callbacks and every page",
        Replaced(
            GATE,
            "            self._take_in(environ, sent, limit_of(path))\n",
            "            with self._places:\n"
            "                self._take_in(environ, sent, limit_of(path))\n",
        ),
        f"{STALLED}test_p2_nobody_waits_for_a_sender_at_a_place_among_those_who_work",
    ),
    Guard(
        "a form has a largest size",
        "P2",
        "whoever has no account has bodies of any length read and parsed",
        Replaced(
            "notifier/web/people/blueprint.py",
            '        state.app.config["MAX_CONTENT_LENGTH"] = FORM_LIMIT\n',
            "",
        ),
        f"{STALLED}test_a_form_beyond_the_limit_is_answered_413_in_either_encoding",
    ),
    Guard(
        "fewer bodies are waited for than connections are taken",
        "P2",
        "probes and pages get no answer while senders stall",
        Replaced(GATE, "if not self._bodies.acquire(blocking=False):", "if False:"),
        f"{AT_GATE}test_only_so_many_bodies_are_waited_for_at_once",
    ),
    Guard(
        "a body that was broken off is not taken for a whole one",
        "P2",
        "half of a form is done, and the half that limits it is missing",
        Replaced(GATE, "        environ[FAULT] = BodyFault.BROKEN_OFF\n", "        pass\n"),
        f"{AT_GATE}test_a_body_that_was_broken_off_is_told_from_a_whole_one",
    ),
    Guard(
        "of a text without end nothing is looked at",
        "P2",
        "one form keeps the interpreter busy for half a minute, and nobody is answered",
        Replaced(
            "notifier/web/people/search.py",
            "        if len(text) > LONGEST:\n",
            "        if False:\n",
        ),
        "tests/web/people/test_search.py::"
        "test_of_what_is_longer_than_any_name_and_address_nothing_is_looked_at",
    ),
    Guard(
        "a connection on which nothing moves is cut",
        "P2",
        "senders who stall keep their threads for as long as they like",
        Replaced(SILENT_LINES, "                line.shutdown(socket.SHUT_RDWR)\n", ""),
        f"{AT_LINES}test_a_silent_connection_is_cut_and_one_on_which_something_moves_is_not",
    ),
)
