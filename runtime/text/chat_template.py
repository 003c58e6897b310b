"""Render chat templates as transformers does.

Templates come with models, from people unknown, so they run in Jinja's sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from phloem.runtime.errors import RequestError

Messages = Sequence[Mapping[str, Any]]

OPEN_END = "PHLOEM_END_OF_OPEN_MESSAGE "
"""Marks where an open message ends. Its last space shows whether the template strips content."""


class ChatTemplate:
    """One template with the variables that its tokenizer gives it."""

    def __init__(self, source: str, variables: Mapping[str, str]) -> None:
        self._source = source
        self._variables = variables

    def render(
        self, messages: Messages, *, add_generation_prompt: bool = False, **kwargs: Any
    ) -> str:
        """The conversation as text.

        Raises:
            RequestError: the template refuses the messages, or fails on them.
        """
        variables = {**self._variables, "tools": None, "documents": None, **kwargs}
        try:
            return self._compiled.render(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                **variables,
            )
        except _TEMPLATE_FAILURES as error:
            raise RequestError(
                f"the chat template refuses the messages: {error}",
                param="messages",
                code="chat_template",
            ) from error

    def render_open(self, messages: Messages, **kwargs: Any) -> str:
        """The conversation as text that ends where the content of its last message does.

        Raises:
            RequestError: the last message has no text, or the template does not end with it.
        """
        content = messages[-1].get("content") if messages else None
        if not isinstance(content, str):
            raise RequestError(
                "continue_final_message needs a last message with text", param="messages"
            )
        marked = [*messages[:-1], {**messages[-1], "content": content + OPEN_END}]
        text, mark, after = self.render(marked, **kwargs).rpartition(OPEN_END.rstrip())
        if not mark:
            raise RequestError(
                "the chat template drops the last message, so it cannot be continued",
                param="messages",
                code="chat_template",
            )
        return text if after.startswith(" ") else text.rstrip()

    @cached_property
    def _compiled(self) -> Template:
        return _environment().from_string(self._source)


_TEMPLATE_FAILURES = (
    TemplateError, TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError,
    RecursionError, MemoryError,
)  # fmt: skip
"""What Jinja raises, and what expressions raise on content of another shape than expected."""


class _GenerationBlock(Extension):
    """``{% generation %}`` marks what a model says, for training; here it is transparent."""

    tags = {"generation"}  # noqa: RUF012  # the name and form that Jinja wants

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes HTML, which prompts must not have."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
