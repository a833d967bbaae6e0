"""Signs, once an hour, a statement over the ends of all chains that grew since the last one.

Whoever removes the end of a chain together with its head, or a whole notice, contradicts a
statement that stands elsewhere as well: in the log, and in exports. Each statement holds the
hash of the one before, so that none can be taken out of their midst.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from notifier.logs import log
from notifier.store.database import PooledConnection
from notifier.store.ledger import checkpoints
from notifier.store.ledger.checkpoints import Checkpoint, Due, Head
from notifier.store.reads.trail import written

EVERY: Final = timedelta(hours=1)
"""How long a change may stand under no checkpoint, but for the time to the next tick."""

HEADS_AT_ONCE: Final = 20_000
"""More than this go into several checkpoints, one right after the other."""

NO_PREVIOUS: Final = bytes(32)


@dataclass(frozen=True, slots=True)
class Seal:
    """The key that signs, by the name that checkpoints call it."""

    key: Ed25519PrivateKey
    key_id: str

    @classmethod
    def of(cls, seed: bytes) -> Seal:
        """The key of a seed of 32 bytes."""
        key = Ed25519PrivateKey.from_private_bytes(seed)
        return cls(key, key_name(key.public_key().public_bytes_raw()))


def key_name(public_key: bytes) -> str:
    """The first 16 hex digits of the public key's SHA-256."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def public_keys(seeds: Iterable[bytes]) -> dict[str, bytes]:
    """The public keys of these seeds by their names: what an auditor needs, and no secret."""
    found = [Ed25519PrivateKey.from_private_bytes(each).public_key() for each in seeds]
    raw = [each.public_bytes_raw() for each in found]
    return {key_name(each): each for each in raw}


def checkpoint(
    seal: Seal,
    connection: PooledConnection,
    *,
    every: timedelta = EVERY,
    limit: int = HEADS_AT_ONCE,
) -> int:
    """Make a checkpoint if one is due; how many heads it covers, nought where none is due.

    One is made for an hour without changes too, so that its age says whether this works. Where
    several do this at once, one of them comes through.
    """
    due = checkpoints.next_due(connection, every)
    made = _made(seal, connection, due, limit) if due else None
    return made.head_count if made else 0


def checkpoint_now(
    seal: Seal, connection: PooledConnection, *, limit: int = HEADS_AT_ONCE
) -> Checkpoint:
    """The last of as many as it takes to cover all that is there now, due or not.

    Where somebody else comes through with the same number, the next one is made after theirs.
    """
    while True:
        due = checkpoints.next_due(connection, timedelta(0))
        made = _made(seal, connection, due, limit) if due else None
        if made and made.head_count < limit:
            return made


def _made(seal: Seal, connection: PooledConnection, due: Due, limit: int) -> Checkpoint | None:
    """The checkpoint that came of `due`; None where another one has its number by now."""
    heads = checkpoints.changed(connection, due, limit)
    made = signed(seal, due, heads)
    if not checkpoints.write(connection, made, heads, due, complete=len(heads) < limit):
        return None
    announce(made)
    return made


def signed(seal: Seal, due: Due, heads: Sequence[Head]) -> Checkpoint:
    """The checkpoint over `heads`; `heads` are in the order of their notices' ids."""
    lines = "".join(f"{each.notice_id} {each.seq} {each.head.hex()}\n" for each in heads)
    digest = hashlib.sha256(lines.encode()).digest()
    previous = due.previous or NO_PREVIOUS
    text = (
        "notifier-checkpoint-1\n"
        f"number={due.number}\n"
        f"made_at={written(due.now)}\n"
        f"previous={previous.hex()}\n"
        f"heads={len(heads)}\n"
        f"heads_sha256={digest.hex()}\n"
        f"key_id={seal.key_id}"
    ).encode()
    signature = seal.key.sign(text)
    return Checkpoint(
        number=due.number,
        made_at=due.now,
        previous=previous,
        head_count=len(heads),
        heads_digest=digest,
        key_id=seal.key_id,
        signature=signature,
        hash=hashlib.sha256(text + signature).digest(),
    )


def announce(made: Checkpoint) -> None:
    """The log's copy: whoever keeps it sees that this checkpoint was removed or replaced."""
    log.info(
        "trail_checkpoint",
        checkpoint=made.number,
        digest=made.hash.hex(),
        head_count=made.head_count,
        key_id=made.key_id,
        signature=made.signature.hex(),
    )
