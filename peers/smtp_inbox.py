"""The inbox: a real SMTP server whose mails, journal and texts can be read over HTTP.

`python -m peers.smtp_inbox` serves it alone and prints one line of JSON with its ports.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import socketserver
import ssl
from collections.abc import Mapping
from typing import Any

from peers.alone import add_stop_option, serve
from peers.control import control_routes
from peers.fates import Act, Phase, Rule, Script
from peers.inbox_page import mail_body_page, overview_page
from peers.journal import Holds, Journal
from peers.mailbox import Mail, Mailbox, bodies_of, raw_mail
from peers.smtp_session import Envelope, Session
from peers.sockets import LoopbackServer
from peers.web import HTML, Reply, Request, WebServer, as_json

SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
SHOWN = 60


class _Connection(socketserver.BaseRequestHandler):
    server: _SmtpServer

    def handle(self) -> None:
        inbox, connection = self.server.inbox, self.request
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # a client may leave in the middle of its handshake
            if inbox.tls is not None and inbox.tls_at_once:
                connection = inbox.tls.wrap_socket(connection, server_side=True)
            Session(connection, inbox).run()


class _SmtpServer(LoopbackServer):
    inbox: Inbox


class Inbox:
    """The SMTP server, what it keeps, and its web side.

    `credentials` (user, password) makes AUTH necessary; `tls` offers STARTTLS, or with
    `tls_at_once` speaks TLS from the first byte. `offers` are more extensions to name in the
    greeting, such as `DSN` (whose parameters are taken; no report is ever sent).
    """

    def __init__(
        self,
        *,
        smtp_port: int = 0,
        web_port: int = 0,
        credentials: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        tls_at_once: bool = False,
        offers: tuple[str, ...] = (),
    ) -> None:
        self.credentials, self.tls, self.tls_at_once = credentials, tls, tls_at_once
        self.offers = offers
        self.script, self.journal, self.holds = Script(), Journal(), Holds()
        self.mailbox = Mailbox()
        self._smtp = _SmtpServer(smtp_port, _Connection)
        self._smtp.inbox = self
        self.smtp_port = self._smtp.port
        self._web = WebServer(self._routes(), port=web_port)
        self.url = self._web.url

    def start(self) -> None:
        """Begin to take mail and to answer."""
        self._smtp.start()
        self._web.start()

    def close(self) -> None:
        """Stop both servers and let go of whatever is held."""
        self.holds.close()
        self._smtp.stop()
        self._web.close()

    def keep(self, envelope: Envelope, raw: bytes, facts: Mapping[str, object]) -> None:
        """Keep a message and put it in the journal; after this it has arrived."""
        self.mailbox.keep_mail(
            envelope.sender or "",
            tuple(envelope.recipients),
            raw,
            str(facts["fate"]),
            envelope.envelope_id,
        )
        self.journal.add("stored", facts)

    def _routes(self) -> dict[tuple[str, str], Any]:
        return {
            **control_routes(self.journal, self.holds),
            ("GET", "/"): self._overview,
            ("GET", "/mail"): self._mail_body,
            ("GET", "/messages.json"): self._messages,
            ("GET", "/texts.json"): self._texts,
            ("POST", "/texts"): self._take_text,
            ("POST", "/mails"): self._take_mail,
            ("POST", "/control/script"): self._add_rule,
            ("POST", "/control/clear"): self._clear_script,
        }

    def _overview(self, request: Request) -> Reply:
        page = overview_page(
            self.mailbox.mails(limit=SHOWN),
            self.mailbox.texts(limit=SHOWN),
            chosen=int(request.query.get("mail", "0")),
        )
        return Reply(body=page.encode(), media_type=HTML, headers={"Cache-Control": "no-store"})

    def _mail_body(self, request: Request) -> Reply:
        mail = self.mailbox.mail(int(request.query["number"]))
        if mail is None:
            return as_json({"error": "no such mail"}, 404)
        headers = {"Content-Security-Policy": SANDBOX, "Cache-Control": "no-store"}
        return Reply(body=mail_body_page(mail).encode(), media_type=HTML, headers=headers)

    def _messages(self, request: Request) -> Reply:
        mails = self.mailbox.mails(request.query.get("recipient"))
        limit = int(request.query.get("limit", "100"))
        return as_json({"messages": [_as_facts(mail) for mail in mails[:limit]]})

    def _texts(self, _: Request) -> Reply:
        texts = self.mailbox.texts()
        return as_json({"texts": [_fields(t, "sender", "recipient", "body") for t in texts]})

    def _take_text(self, request: Request) -> Reply:
        given = request.json()
        text = self.mailbox.keep_text(
            str(given["from"]), str(given["to"]), str(given["body"]), given.get("reference")
        )
        facts = _fields(text, "recipient", "reference") | {"size": len(text.body)}
        self.journal.add("text", facts)
        return as_json({"number": text.number}, 201)

    def _take_mail(self, request: Request) -> Reply:
        given = request.json()
        recipient, reference = str(given["to"]), given.get("reference")
        mail = self.mailbox.keep_mail(
            str(given["from"]),
            (recipient,),
            raw_mail(given),
            str(given.get("heard", "accepted")),
            reference,
            via=str(given["via"]),
        )
        facts = {"recipient": recipient, "reference": reference, "via": mail.via}
        self.journal.add("mail", {**facts, "size": len(mail.raw)})
        return as_json({"number": mail.number}, 201)

    def _add_rule(self, request: Request) -> Reply:
        given = request.json()
        given["phase"], given["act"] = Phase(given["phase"]), Act(given.get("act", Act.REPLY))
        given.setdefault("name", f"{given['act']}-at-{given['phase']}")
        self.script.add(Rule(**given))
        return as_json({}, 201)

    def _clear_script(self, _: Request) -> Reply:
        self.script.clear()
        return as_json({})


def _fields(thing: object, *names: str) -> dict[str, object]:
    return {name: getattr(thing, name) for name in names}


def _as_facts(mail: Mail) -> dict[str, object]:
    message = mail.parsed()
    text, html = bodies_of(message)
    return {
        **_fields(mail, "number", "sender", "recipients", "fate", "via"),
        "at": mail.at.isoformat(),
        "subject": str(message["subject"] or ""),
        "headers": [[name, str(value)] for name, value in message.items()],
        "text": text,
        "html": html,
    }


def main() -> None:
    """Serve an inbox alone."""
    parser = argparse.ArgumentParser(prog="python -m peers.smtp_inbox")
    parser.add_argument("--smtp-port", type=int, default=0)
    parser.add_argument("--web-port", type=int, default=0)
    add_stop_option(parser)
    chosen = parser.parse_args()
    inbox = Inbox(smtp_port=chosen.smtp_port, web_port=chosen.web_port)
    facts: dict[str, object] = {"smtp_port": inbox.smtp_port, "url": inbox.url}
    serve(inbox, facts, stop_with_stdin=chosen.stop_with_stdin)


if __name__ == "__main__":
    main()
