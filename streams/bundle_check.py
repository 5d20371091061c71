"""Checks an exported session with nothing but the standard library: `python3 SESSION.zip`, or by import.

This very file is the bundle's `__main__.py`. It holds against the bundle what the bundle says of itself: the chain
over the stored bytes, the blobs that events name, and the manifest. Whoever rewrites a whole bundle consistently is
found only against an anchor kept elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

ZERO_HASH = "0" * 64
_DATAREF = re.compile(r"^blob:([0-9a-f]{64}):(\d+):\d+$")


def first_fault(path: str) -> str | None:
    """The first bad place of the bundle at `path` and why, in one line; None if all is as it was exported."""
    try:
        with zipfile.ZipFile(path) as bundle:
            return next(faults(bundle), None)
    except (OSError, zipfile.BadZipFile) as error:
        return f"{path}: not a bundle: {error}"


def told(path: str) -> str:
    """What a bundle without a fault is, in one line: its session, how many events, and the head that an anchor names."""
    with zipfile.ZipFile(path) as bundle:
        manifest: dict[str, Any] = json.loads(bundle.read("manifest.json"))
    count, members = manifest["events"], len(manifest["members"])
    return (
        f"session {manifest['session']}: {count} events, the chain is whole up to {manifest['head']}, and all {members} "
        "members are as they were exported"
    )


def faults(bundle: zipfile.ZipFile) -> Iterator[str]:
    """Every fault, chain first: what follows the first one may be its consequence."""
    try:
        manifest: dict[str, Any] = json.loads(bundle.read("manifest.json"))
        session, count, head = manifest["session"], manifest["events"], manifest["head"]
        members: dict[str, str] = manifest["members"]
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        yield f"manifest.json: cannot be read: {error!r}"
        return
    names = sorted(name for name in bundle.namelist() if name.startswith("events/"))
    previous, time = ZERO_HASH, ""
    for place, name in enumerate(names, 1):
        try:
            body = bundle.read(name)
            event = json.loads(body)
        except (ValueError, zipfile.BadZipFile) as error:
            yield f"event {place} ({name}): cannot be read: {error}"
            return
        said = (event.get("session"), event.get("n"), event.get("prevhash"))
        if said != (session, place, previous):
            why = "belongs to another session" if said[0] != session else "does not follow the event before it"
            yield f"event {place} ({name}): {why}: it says session {said[0]}, event {said[1]}, after {str(said[2])[:12]}"
            return
        if event.get("time", "") < time:
            yield f"event {place} ({name}): its time {event.get('time')} goes back"
        yield from (f"event {place} ({name}): {why}" for why in _blob_faults(bundle, event))
        previous, time = hashlib.sha256(body).hexdigest(), event.get("time", "")
    if (len(names), previous) != (count, head):
        yield f"event {len(names)}: the session ends there with {previous[:12]}; exported were {count} events up to {str(head)[:12]}"
    present = {name for name in bundle.namelist() if name != "manifest.json"}
    for name in sorted(present | set(members)):
        if name not in members:
            yield f"{name}: was put in after the export"
        elif name not in present:
            yield f"{name}: is missing"
        elif _sha256(bundle, name) != members[name]:
            yield f"{name}: its bytes are not those that were exported"


def _sha256(bundle: zipfile.ZipFile, name: str) -> str | None:
    try:
        return hashlib.sha256(bundle.read(name)).hexdigest()
    except zipfile.BadZipFile:
        return None


def _blob_faults(bundle: zipfile.ZipFile, event: dict[str, Any]) -> Iterator[str]:
    for sha256, size in blobs_of(event):
        try:
            data = bundle.read(f"blobs/{sha256}")
        except (KeyError, zipfile.BadZipFile):
            yield f"the blob {sha256[:12]} that it names is missing or damaged"
            continue
        if len(data) != size or hashlib.sha256(data).hexdigest() != sha256:
            yield f"the blob {sha256[:12]} that it names is not what it was"


def blobs_of(event: Any) -> Iterator[tuple[str, int]]:
    """(sha256, size in bytes) of each blob that an event's JSON names, in its payload too."""
    if isinstance(event, dict):
        if isinstance(event.get("sha256"), str) and isinstance(event.get("chunks"), int):
            yield event["sha256"], event.get("size_bytes", 0)
        named = _DATAREF.match(str(event.get("dataref", "")))
        if named:
            yield named[1], int(named[2])
        for value in event.values():
            yield from blobs_of(value)
    elif isinstance(event, list):
        for value in event:
            yield from blobs_of(value)


def main() -> int:
    """Check the bundle that this file was started from, or the one that is named."""
    path = sys.argv[1] if len(sys.argv) > 1 else sys.argv[0]
    fault = first_fault(path)
    sys.stdout.write(f"BAD  {fault}\n" if fault else f"ok   {told(path)}\n")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
