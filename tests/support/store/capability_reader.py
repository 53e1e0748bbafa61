"""The other process of a transfer: it gets a capability as bytes and uses it, reading only.

Run with the location and the capability in hexadecimal. Prints the rows at the capability's
frontier, then what became of attempts to clone, downgrade and write, then drops the capability.
"""

from __future__ import annotations

import json
import sys

from noonmark import persist
from noonmark.errors import NoonmarkError
from noonmark.storage import Capability, ReadCapability, Storage


def main(url: str, handed_over: str) -> None:
    capability = Capability.from_bytes(bytes.fromhex(handed_over))
    assert isinstance(capability, ReadCapability)
    with persist.open(url, options=persist.Options(mode="polling")) as client:
        storage = Storage(client)
        subscription = storage.subscribe_at(capability)
        step = next(iter(subscription))
        rows = sorted(update.data for update in step.updates)
        clone = storage.clone(capability)
        moved = storage.downgrade(capability, 3)
        try:
            storage.acquire_capabilities(capability.id)
        except NoonmarkError as error:
            refusal = error.id
        subscription.cancel()
        storage.drop(clone)
        found = {"rows": rows, "moved": moved.frontier.only(), "refusal": refusal}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
