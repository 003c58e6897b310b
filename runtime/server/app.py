"""The HTTP application over a running client."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI

from phloem.runtime.client import Client
from phloem.runtime.server import chat, completions, control, generate, sessions, status
from phloem.runtime.server.control_types import AbortBody, DetokenizeBody, TokenizeBody
from phloem.runtime.server.errors import install_error_handlers
from phloem.runtime.server.middleware import ApiKey, BodyLimit
from phloem.runtime.server.native_types import GenerateBody, NativeSampling
from phloem.runtime.server.openai_types import ChatRequest, CompletionRequest
from phloem.runtime.server.openapi import install_openapi
from phloem.runtime.server.service import Service
from phloem.runtime.server.session_types import CloseSessionBody, OpenSessionBody
from phloem.runtime.server.settings import ServerSettings

BODIES = (
    AbortBody,
    ChatRequest,
    CloseSessionBody,
    CompletionRequest,
    DetokenizeBody,
    GenerateBody,
    NativeSampling,
    OpenSessionBody,
    TokenizeBody,
)


def create_app(client: Client, settings: ServerSettings | None = None) -> FastAPI:
    """The application; whoever made ``client`` closes it after the last request."""
    settings = settings or ServerSettings()
    app = FastAPI(title="Phloem", version=version("phloem"), redirect_slashes=False)
    app.state.service = Service(client, settings)
    # The last added is the outermost: no body is read for a stranger.
    app.add_middleware(BodyLimit, limit=settings.max_body_bytes)
    if settings.api_key is not None:
        app.add_middleware(ApiKey, key=settings.api_key)
    for module in (generate, sessions, completions, chat, control, status):
        app.include_router(module.router)
    install_error_handlers(app)
    install_openapi(app, BODIES)
    return app
