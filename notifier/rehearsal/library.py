"""Finds scenarios and reads them: those that come with the product, and files of one's own."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from notifier.domain.policy import DEFAULTS, Policy, PolicyInvalid, parse_policy
from notifier.domain.states import Channel
from notifier.rehearsal.script import KINDS, Script

FOLDER: Final = Path(__file__).with_name("scenarios")
_READER: Final = TypeAdapter(Script)


class ScenarioInvalid(ValueError):
    """A scenario cannot be used; the text names every fault and where it is."""


def names() -> list[str]:
    """The scenarios that come with the product, in the order in which they are read best."""
    return sorted(each.stem for each in FOLDER.glob("*.toml"))


def load(name: str) -> Script:
    """The scenario with this name, or in the file at this path. Raises `ScenarioInvalid`."""
    path = Path(name)
    if name in names():
        path = FOLDER / f"{name}.toml"
    elif path.suffix != ".toml":
        raise ScenarioInvalid(_unknown(name))
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ScenarioInvalid(f"{name}: {error.strerror or 'cannot be read'}") from None
    return read(source, name)


def read(source: bytes, name: str) -> Script:
    """The scenario in a file's bytes. Raises `ScenarioInvalid`."""
    try:
        document = tomllib.loads(source.decode())
    except UnicodeDecodeError:
        raise ScenarioInvalid(f"{name}: the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioInvalid(f"{name}: not valid TOML: {error}") from None
    try:
        script = _READER.validate_python(_with_providers(document))
    except ValidationError as error:
        raise ScenarioInvalid(f"{name}:\n{_faults(error)}") from None
    for channel in Channel:
        provider = script.channel(channel).provider
        if KINDS[provider].channel is not channel:
            raise ScenarioInvalid(
                f"{name}:\n/{channel}/provider: {provider} does not send {channel}"
            )
    return script


def policy_for(script: Script, given: bytes | None) -> Policy:
    """The policy to rehearse under: `given` (a TOML file's bytes), else the built-in values.

    What the file leaves out comes from the scenario's own `policy`, then from the built-in
    values. Raises `PolicyInvalid` as the product does for the same file, and `ScenarioInvalid`
    where file and scenario only contradict each other.
    """
    if given is None:
        return parse_policy(script.policy)
    parse_policy(given)
    try:
        return parse_policy(_over(script.policy, tomllib.loads(given.decode())))
    except PolicyInvalid as error:
        raise ScenarioInvalid(
            f"the policy file contradicts values that this scenario is written for:\n{error}"
        ) from None


def _over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**under, **over}
    for key, value in under.items():
        if isinstance(DEFAULTS.get(key), dict) and isinstance(value, Mapping):
            merged[key] = {**value, **over.get(key, {})}
    return merged


def _with_providers(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the providers, and consent to a text, that it leaves out."""
    filled = dict(document)
    for name, usual in (
        ("email", {"provider": "postmark"}),
        ("sms", {"provider": "twilio", "consent": True}),
    ):
        if isinstance(filled.get(name, {}), Mapping):
            filled[name] = {**usual, **filled.get(name, {})}
    return filled


def _faults(error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        pointer = "/" + "/".join(str(part) for part in fault["loc"])
        lines.append(f"{pointer}: {fault['msg'][:1].lower()}{fault['msg'][1:]}")
    return "\n".join(lines)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
    near += [each for each in names() if name and name in each and each not in near]
    if near:
        return f"no scenario is called {name}; near to it: {', '.join(near[:5])}"
    return f"no scenario is called {name}; flask rehearse --list names them all"


__all__ = ["PolicyInvalid", "ScenarioInvalid", "load", "names", "policy_for", "read"]
