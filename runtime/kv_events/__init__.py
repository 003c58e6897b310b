"""What is in the prefix cache, told to routers that send requests where their prefixes are."""

from phloem.runtime.kv_events.kv_events import KVEvents

__all__ = ["KVEvents"]
