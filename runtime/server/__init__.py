"""The HTTP server: SGLang's native API and OpenAI's, over any client of the engine."""

from phloem.runtime.server.app import create_app
from phloem.runtime.server.launch import serve
from phloem.runtime.server.settings import ServerSettings

__all__ = ["ServerSettings", "create_app", "serve"]
