"""Identity of the cluster and of its running master."""

import uuid
from dataclasses import dataclass, field


@dataclass
class Identity:
    epoch: int = 0
    """Number of this start of a master; 0 until the first rows are written."""
    cluster_id: str = ""
    master_id: str = field(default_factory=lambda: str(uuid.uuid4()))
