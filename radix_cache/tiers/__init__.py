"""Where pages go that the device has no room for: host memory, and files that survive a restart."""

from phloem.radix_cache.tiers.disk import DiskStore
from phloem.radix_cache.tiers.host import HostStore
from phloem.radix_cache.tiers.tiers import Tiers

__all__ = ["DiskStore", "HostStore", "Tiers"]
