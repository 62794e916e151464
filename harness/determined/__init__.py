"""Train on a Detent cluster: ``det.core.init()``, ``det.pytorch``, ``det.get_cluster_info()``."""

__version__ = "0.38.1+detent0.1.0"
