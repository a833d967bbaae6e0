"""The inbox's pages: mails and texts, newest first, as their readers would see them.

The list renews itself every two seconds without moving what is being read; a mail's own
HTML is shown in a sandboxed frame that can load nothing and run nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from peers.fates import PRESETS, Act
from peers.mailbox import Mail, Text, bodies_of

STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1c2024, #e8eaed); --paper: light-dark(#f6f7f8,
  #16181b); --card: light-dark(#fff, #1f2226); --line: light-dark(#d5d9de, #3a3f46);
  --soft: light-dark(#5a626c, #a3abb5); --mark: light-dark(#0b5cad, #7db7f5); }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--paper) }
header { padding: .8rem 1rem; border-bottom: 1px solid var(--line) }
h1 { font-size: 1.15rem; margin: 0 } h2 { font-size: 1rem; margin: 0 0 .5rem }
header p, .soft { color: var(--soft); margin: .2rem 0 0; font-size: .875rem }
main { display: grid; gap: 1rem; padding: 1rem; grid-template-columns: minmax(0, 1fr) }
@media (min-width: 60rem) { main { grid-template-columns: minmax(0, 26rem) minmax(0, 1fr) } }
ol { list-style: none; margin: 0; padding: 0; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--card) }
li + li { border-top: 1px solid var(--line) }
li > a, li > div { display: block; padding: .55rem .75rem; color: inherit; text-decoration: none }
li > a:hover strong, li > a:focus-visible strong { color: var(--mark);
  text-decoration: underline }
a[aria-current] { box-shadow: inset 4px 0 0 var(--mark) }
strong, .to { display: block; overflow-wrap: anywhere }
.row { display: flex; justify-content: space-between; gap: 1rem; color: var(--soft);
  font-size: .875rem }
article { background: var(--card); border: 1px solid var(--line); border-radius: .4rem;
  padding: 1rem }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem .75rem;
  margin: 0 0 1rem; font-size: .9rem } dt { color: var(--soft) } dd { margin: 0;
  overflow-wrap: anywhere }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 1rem/1.5 ui-monospace, monospace;
  margin: 0 }
iframe { width: 100%; height: 30rem; border: 1px solid var(--line); border-radius: .3rem;
  background: #fff; color-scheme: light }
summary { cursor: pointer; margin: 1rem 0 .5rem; color: var(--mark) }
"""

RENEW = """
async function renew() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const id of ["mails", "texts", "as-of"]) {
        const now = document.getElementById(id), next = page.getElementById(id);
        if (now.contains(document.activeElement) || now.innerHTML === next.innerHTML) continue;
        now.innerHTML = next.innerHTML;
      }
    } catch { document.getElementById("as-of").textContent = "The inbox does not answer."; }
  }
  setTimeout(renew, 2000);
}
setTimeout(renew, 2000);
"""

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Inbox</title><link rel="icon" href="data:,"><style>{style}</style></head>
<body>
<header><h1>Inbox</h1>
<p>What reached people who do not exist: mails by SMTP and by Postmark, texts by Twilio.
<span id="as-of">{as_of}</span></p></header>
<main>
<div>
<section aria-labelledby="mails-title"><h2 id="mails-title">Mails</h2>
<div id="mails">{mails}</div></section>
<section aria-labelledby="texts-title"><h2 id="texts-title" style="margin-top:1rem">Texts</h2>
<div id="texts">{texts}</div></section>
</div>
{reading}
</main>
<script>{renew}</script>
</body></html>
"""


def overview_page(mails: Sequence[Mail], texts: Sequence[Text], *, chosen: int) -> str:
    """The whole page; `chosen` is the number of the mail to show, 0 for the newest."""
    shown = next((m for m in mails if m.number == chosen), None)
    if shown is None and mails:
        shown = mails[0]
    as_of = f"Last arrival {mails[0].at:%H:%M:%S} UTC." if mails else ""
    return PAGE.format(
        style=STYLE,
        renew=RENEW,
        as_of=as_of,
        mails=_rows([_mail_row(m, current=m.number == chosen) for m in mails], "No mail yet."),
        texts=_rows([_text_row(t) for t in texts], "No text yet."),
        reading=_reading(shown) if shown else "",
    )


def mail_body_page(mail: Mail) -> str:
    """The HTML body alone, for the frame; links stay dead there by the sandbox."""
    text, html = bodies_of(mail.parsed())
    return html or f"<pre>{escape(text or '')}</pre>"


def _rows(rows: list[str], none_yet: str) -> str:
    if not rows:
        return f'<p class="soft">{none_yet}</p>'
    return f"<ol>{''.join(rows)}</ol>"


def _mail_row(mail: Mail, *, current: bool) -> str:
    mark = ' aria-current="true"' if current else ""
    return (
        f'<li><a href="/?mail={mail.number}#reading"{mark}>'
        f"<strong>{_subject(mail)}</strong>"
        f'<span class="to">{escape(", ".join(mail.recipients))}</span>'
        f'<span class="row"><time datetime="{mail.at.isoformat()}">{mail.at:%H:%M:%S} UTC</time>'
        f"<span>{escape(mail.via)}; sender heard: {escape(_fate(mail))}</span></span></a></li>"
    )


def _text_row(text: Text) -> str:
    return (
        f'<li><div><span class="to">{escape(text.recipient)}</span><pre>{escape(text.body)}</pre>'
        f'<span class="row"><time datetime="{text.at.isoformat()}">{text.at:%H:%M:%S} UTC</time>'
        f"<span>from {escape(text.sender)}</span></span></div></li>"
    )


def _reading(mail: Mail) -> str:
    text, html = bodies_of(mail.parsed())
    frame = (
        f'<details open><summary>As HTML</summary><iframe sandbox title="HTML body"'
        f' src="/mail?number={mail.number}"></iframe></details>'
        if html
        else ""
    )
    plain = (
        f"<details open><summary>As text</summary><pre>{escape(text)}</pre></details>"
        if text
        else ""
    )
    return (
        f'<article id="reading"><h2>{_subject(mail)}</h2>{_envelope(mail)}{plain}{frame}</article>'
    )


def _envelope(mail: Mail) -> str:
    facts = {
        "From": str(mail.parsed()["from"] or mail.sender),
        "To": ", ".join(mail.recipients),
        "Arrived": f"{mail.at:%Y-%m-%d %H:%M:%S} UTC",
        "By": mail.via,
        "Sender heard": _fate(mail),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f"<dl>{rows}</dl>"


def _subject(mail: Mail) -> str:
    return escape(str(mail.parsed()["subject"] or "(no subject)"))


def _fate(mail: Mail) -> str:
    rule = PRESETS.get(mail.fate)
    match rule and rule.act:
        case None | Act.SLOW | Act.HOLD:
            return "accepted" if rule or mail.fate == "accept" else mail.fate
        case Act.REPLY:
            return "an unreadable reply"
        case _:
            return "nothing"
