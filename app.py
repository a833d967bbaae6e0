"""Composition root: `python app.py` serves, `flask ...` finds its commands here."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from flask import Flask
from flask_migrate import Migrate
from flask_sqlalchemy import SQLAlchemy

from notifier import cli
from notifier.assembly.alerting import check_pager
from notifier.assembly.application import compose
from notifier.assembly.pages import bare_app, web_app
from notifier.doctor import examine
from notifier.links.probe import probe_auth_service
from notifier.logs import configure_logs, log, log_unraisable
from notifier.providers import registry
from notifier.serving import hold, serve
from notifier.setting_names import unknown_settings
from notifier.settings import Settings, SettingsInvalid, load_settings
from notifier.starting import (
    AtHand,
    CannotStart,
    check_templates,
    database_at_hand,
    dump_no_memory,
    first_policy,
    require_schema,
    sqlalchemy_url,
    told_briefly,
)
from notifier.store.database import Database
from notifier.store.schema import MIGRATIONS


def create_app() -> Flask:
    """The application for `flask ...`: its commands, and its pages where the schema fits."""
    dump_no_memory()
    configure_logs()
    try:
        settings = load_settings(os.environ)
        stack = ExitStack()
        atexit.register(stack.close)
        at_hand = stack.enter_context(database_at_hand(settings))
    except (SettingsInvalid, CannotStart) as error:
        sys.exit(str(error))
    app, url = bare_app(), at_hand.url
    try:
        require_schema(url)
        app = web_app(compose(settings, url))
    except CannotStart as error:
        app.extensions["notifier_problem"] = str(error)
    app.config["SQLALCHEMY_DATABASE_URI"] = sqlalchemy_url(url)
    Migrate(app, SQLAlchemy(app), directory=str(MIGRATIONS))
    providers, links = partial(registry.probe_all, settings), partial(probe_auth_service, settings)
    doctor = partial(examine, settings, url, providers, at_hand.embedded, probe_links=links)
    cli.install(app, settings, url, doctor)
    return app


def main() -> None:
    """Serve. Exit status 1, with a sentence, where something forbids the start."""
    dump_no_memory()
    configure_logs()
    log_unraisable()
    try:
        settings = load_settings(os.environ)
        for each in unknown_settings(os.environ):
            log.warning("setting_unknown", setting=each.variable)
        check_pager(settings)
        with hold(settings.bind) as held, database_at_hand(settings) as at_hand:
            require_schema(at_hand.url)
            start_checks(settings, at_hand.url)
            print(f"pid {os.getpid()} serves {settings.public_base}", flush=True)  # noqa: T201
            build, watch = partial(started_app, settings, at_hand), at_hand.watch
            serve(held, settings.bind, build, beside=watch.start if watch else None)
    except (SettingsInvalid, CannotStart, registry.NoAdapter) as error:
        sys.exit(str(error))


def start_checks(settings: Settings, url: str) -> None:
    """Meet what forbids a start here, where a sentence reaches the terminal."""
    database = Database(url, size=1)
    try:
        check_templates(database)
        registry.senders(settings, first_policy(settings))
    finally:
        database.close()


def started_app(settings: Settings, at_hand: AtHand) -> tuple[Flask, Callable[[], None]]:
    """In the serving process: everything built and started, and how to stop it."""
    configure_logs()
    with told_briefly("start_failed"):
        parts = compose(settings, at_hand.url)
        if at_hand.watch:
            parts.embedded = at_hand.watch.report
        app = web_app(parts)
        parts.start()
    return app, told_briefly("stop_failed")(parts.stop)


if __name__ == "__main__":
    main()
