"""Conversations kept as tokens, so that each call sends only what is new; over any client."""

from phloem.runtime.sessions.book import Sessions
from phloem.runtime.sessions.continuation import Continuation
from phloem.runtime.sessions.generate import generate
from phloem.runtime.sessions.session import Session
from phloem.runtime.sessions.turn import Turn

__all__ = ["Continuation", "Session", "Sessions", "Turn", "generate"]
