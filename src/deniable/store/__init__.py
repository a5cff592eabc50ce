"""Trials on disk: one file a campaign, to which every finished block is added with its checksum.

Guarantee: a block counts only if every byte of it is as it was written; a changed one is never used. kill -9 loses at
most the blocks that were still running, and a power cut those of the last moment, too. Damage is named with the file
and the block, and resuming plays just that block again. One process at a time: the file is locked from opening to
closing, and the lock ends with the process however that ends.

The file is a row of records (`records`): number -1 holds the settings, number n holds block n: the settings' SHA-256
and the arrays. A campaign's answer (audit.json and its like) lies beside the blocks, with a checksum of its own
(`documents`). `store` makes a campaign of them; `shared_blocks` and `shared_store` are for processes that share
a directory.
"""

from deniable.store.documents import canonical, read_document, replace_file, verify_document, write_document
from deniable.store.records import FILE, StoreError
from deniable.store.shared_blocks import SETTINGS_FILE, SharedBlocks, settings_digest
from deniable.store.shared_store import SharedStore
from deniable.store.store import (
    Store,
    differences,
    kept,
    look_at_blocks,
    look_at_settings,
    open_local_store,
    read_blocks,
    read_settings,
)

CampaignStore = Store | SharedStore
"""What keeps a campaign's blocks: a store of this process alone, or one that many share."""

__all__ = [
    "FILE",
    "SETTINGS_FILE",
    "CampaignStore",
    "SharedBlocks",
    "SharedStore",
    "Store",
    "StoreError",
    "canonical",
    "differences",
    "kept",
    "look_at_blocks",
    "look_at_settings",
    "open_local_store",
    "read_blocks",
    "read_document",
    "read_settings",
    "replace_file",
    "settings_digest",
    "verify_document",
    "write_document",
]
