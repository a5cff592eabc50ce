"""Where the blocks of a campaign are played: on processes of this machine, unless told otherwise.

A block's result depends on the campaign's settings and the block's number alone, so that every engine gives the same
bytes.

protocol, choice (what an engine is; which one is asked for) | local (a pool on this machine) | cluster (Ray) | beside
(one of many processes that share a directory) | blocks (plays what a store lacks, and ends when the answer is certain)
| planned, worker, slurm, merge (workers for a planned campaign) | players, status (who plays, and how far it is).
"""

from deniable.engines.beside import Shared, open_store, resume_store
from deniable.engines.blocks import Campaign, play_missing
from deniable.engines.choice import choose_engine
from deniable.engines.cluster import Ray
from deniable.engines.local import Local
from deniable.engines.protocol import Engine, EngineError

__all__ = [
    "Campaign",
    "Engine",
    "EngineError",
    "Local",
    "Ray",
    "Shared",
    "choose_engine",
    "open_store",
    "play_missing",
    "resume_store",
]
