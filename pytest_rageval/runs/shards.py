"""Shards of the cases for several machines, by a hash of each key: adding a case moves no other."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Shard(NamedTuple):
    """Part `number` (1-based) of `of`."""

    number: int
    of: int

    @classmethod
    def parse(cls, written: str) -> Shard:
        """Read a checked `I/N`."""
        number, _, of = written.partition("/")
        return cls(int(number), int(of))

    def takes(self, key: str) -> bool:
        """Return True if the shard has the case: the first 8 bytes of its key's SHA-256, modulo `of`."""
        # Not `hash`, which Python salts anew in each process.
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.of == self.number - 1
