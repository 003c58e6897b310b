"""Chat templates render as transformers renders them, and fail as errors of the request."""

from __future__ import annotations

from typing import Any

import pytest
from chat_templates import CHATML, GEMMA, ORDINARY, REASONING, TOOLS
from transformers.utils.chat_template_utils import render_jinja_template

from phloem.runtime.errors import RequestError
from phloem.runtime.text.chat_template import ChatTemplate

VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}
TURNS = [
    {"role": "user", "content": " Hello <b>&amp;</b> \n"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi! 漢字"},
    {"role": "user", "content": "Bye"},
]
SYSTEM = {"role": "system", "content": "Be brief. "}
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "ü": "<x>"}},
}


def reference(source: str, messages: list[dict[str, Any]], **options: Any) -> str:
    rendered, _ = render_jinja_template([messages], chat_template=source, **VARIABLES, **options)
    text: str = rendered[0]
    return text


@pytest.mark.parametrize("prompt", [True, False])
@pytest.mark.parametrize("name", ORDINARY)
def test_conversations_render_as_in_transformers(name: str, prompt: bool) -> None:
    template = ChatTemplate(ORDINARY[name], VARIABLES)
    starts = [[]] if name in ("gemma", "mistral") else [[], [SYSTEM]]
    for start in starts:
        for length in (1, 2, 3):
            messages = start + TURNS[:length]
            expected = reference(ORDINARY[name], messages, add_generation_prompt=prompt)
            assert template.render(messages, add_generation_prompt=prompt) == expected


def test_tools_and_other_variables_reach_the_template() -> None:
    expected = reference(TOOLS, TURNS, tools=[WEATHER])
    assert ChatTemplate(TOOLS, VARIABLES).render(TURNS, tools=[WEATHER]) == expected
    thinking = ChatTemplate(REASONING, VARIABLES)
    rendered = thinking.render(TURNS, add_generation_prompt=True, enable_thinking=False)
    assert rendered.endswith("<think>\n\n</think>\n\n")


@pytest.mark.parametrize("content", ["Sure, ", "Sure", " Sure \n"])
@pytest.mark.parametrize("name", ["chatml", "llama3", "gemma", "mistral", "phi3", "reasoning"])
def test_an_open_message_ends_the_text(name: str, content: str) -> None:
    messages = [TURNS[0], {"role": "assistant", "content": content}]
    expected = reference(ORDINARY[name], messages, continue_final_message=True)
    assert ChatTemplate(ORDINARY[name], VARIABLES).render_open(messages) == expected


def test_extensions_of_transformers_are_known() -> None:
    source = (
        "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}"
        "{% generation %}{{ m.content }}{% endgeneration %}|{% endfor %}"
        "{{ strftime_now('%Y')[:2] }}"
    )
    assert ChatTemplate(source, {}).render(TURNS) == reference(source, TURNS)


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        (GEMMA, [SYSTEM, *TURNS]),
        (GEMMA, [TURNS[0], TURNS[0]]),
        (CHATML, [{"role": "user", "content": None}]),
        (CHATML, [{"role": "user"}]),
        (CHATML, [{"content": "x"}]),
        (CHATML, [{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
        (GEMMA, []),
        ("{% if %}", TURNS),
        ("{{ messages[0].content.nothing() }}", TURNS),
        ("{{ 1 / 0 }}", TURNS),
        ("{{ [1].append(2) }}", TURNS),
        ("{{ ''.__class__.__mro__ }}", TURNS),
        ("{% for i in range(999999999) %}x{% endfor %}", TURNS),
        ("{{ messages[7].content }}", TURNS),
    ],
)
def test_what_a_template_refuses_is_an_error_of_the_messages(
    source: str, messages: list[dict[str, Any]]
) -> None:
    with pytest.raises(RequestError, match="the chat template refuses the messages") as caught:
        ChatTemplate(source, VARIABLES).render(messages)
    assert caught.value.param == "messages"


def test_the_templates_own_words_are_passed_on() -> None:
    with pytest.raises(RequestError, match="System role not supported"):
        ChatTemplate(GEMMA, VARIABLES).render([SYSTEM])


@pytest.mark.parametrize(
    "messages", [[], [{"role": "assistant", "content": None}], [{"role": "assistant"}]]
)
def test_only_a_message_with_text_can_be_continued(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(RequestError, match="continue_final_message"):
        ChatTemplate(CHATML, VARIABLES).render_open(messages)


def test_a_message_that_the_template_drops_cannot_be_continued() -> None:
    with pytest.raises(RequestError, match="drops the last message"):
        ChatTemplate("{{ messages[0].content }}", VARIABLES).render_open(TURNS)


def test_messages_are_not_changed_by_templates() -> None:
    messages = [{"role": "user", "content": "x", "tags": ["a"]}]
    with pytest.raises(RequestError):
        ChatTemplate("{{ messages[0].tags.append('b') }}", {}).render(messages)
    assert messages == [{"role": "user", "content": "x", "tags": ["a"]}]
