"""The version of this product, and the version of Determined that it is compatible with."""

DETENT_VERSION = "0.2.0"
COMPATIBLE_VERSION = "0.38.1"
__version__ = f"{COMPATIBLE_VERSION}+detent{DETENT_VERSION}"
