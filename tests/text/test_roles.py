"""The affixes taken out of a template write the conversations that it renders."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_templates import COUNTED, NUMBERED, ORDINARY
from hypothesis import given
from hypothesis import strategies as st
from text_samples import byte_level, goldens, load

from phloem.runtime.errors import RequestError
from phloem.runtime.text import RoleAffixes, Tokenizer, role_affixes

WITH_SYSTEM = {"chatml", "default_system", "llama3", "llama31", "phi3", "reasoning"}
CONTENT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("templates")
    key = "tokenizer.chat_template"
    tokens = {"bos_token_id": 0, "eos_token_id": 1}
    return {name: byte_level(folder, **tokens, **{key: t}) for name, t in ORDINARY.items()}


@pytest.fixture(scope="module")
def taken_apart(tokenizers: dict[str, Tokenizer]) -> dict[str, RoleAffixes]:
    return {name: role_affixes(tokenizer) for name, tokenizer in tokenizers.items()}


def conversation(contents: list[str], system: str | None) -> list[dict[str, str]]:
    roles = ["user", "assistant"] * len(contents)
    start = [] if system is None else [{"role": "system", "content": system}]
    return start + [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


@given(
    name=st.sampled_from(sorted(ORDINARY)),
    contents=st.lists(CONTENT, min_size=1, max_size=7).filter(lambda c: len(c) % 2 == 1),
    system=st.none() | CONTENT,
    prompt=st.booleans(),
)
def test_any_conversation_is_written_as_the_template_renders_it(
    name: str,
    contents: list[str],
    system: str | None,
    prompt: bool,
    tokenizers: dict[str, Tokenizer],
    taken_apart: dict[str, RoleAffixes],
) -> None:
    if name == "phi3" and not prompt:
        prompt = True  # it ends a conversation that is not to go on with another text
    if name == "reasoning":
        contents = [c.replace("\n", "") for c in contents]
    messages = conversation(contents, system if name in WITH_SYSTEM else None)
    expected = tokenizers[name].apply_chat_template(messages, add_generation_prompt=prompt)
    assert taken_apart[name].render(messages, add_generation_prompt=prompt) == expected


def test_a_default_system_text_belongs_to_the_opening(taken_apart: dict[str, RoleAffixes]) -> None:
    affixes = taken_apart["default_system"]
    assert affixes.opening == "<|im_start|>system\nYou are helpful.<|im_end|>\n"
    assert affixes.system is not None and affixes.system.prefix == "<|im_start|>system\n"
    assert affixes.user.prefix == "<|im_start|>user\n"
    assert affixes.generation_prompt == affixes.assistant.prefix == "<|im_start|>assistant\n"


def test_what_opens_a_conversation_also_opens_one_with_a_system_message(
    taken_apart: dict[str, RoleAffixes],
) -> None:
    affixes = taken_apart["llama3"]
    assert affixes.opening == "<|im_start|>"  # the vocabulary's BOS token
    assert affixes.system is not None
    assert affixes.system.prefix == "<|im_start|><|start_header_id|>system<|end_header_id|>\n\n"
    assert affixes.user.strips and affixes.assistant.strips
    assert not taken_apart["chatml"].user.strips


def test_an_end_of_conversation_is_no_part_of_a_suffix(
    taken_apart: dict[str, RoleAffixes],
) -> None:
    affixes = taken_apart["phi3"]
    assert affixes.user.suffix == affixes.assistant.suffix == "<|end|>\n"
    assert affixes.assistant.prefix == "<|assistant|>\n"


@pytest.mark.parametrize("name", sorted(set(ORDINARY) - WITH_SYSTEM))
def test_a_template_without_system_messages_says_so(
    name: str, taken_apart: dict[str, RoleAffixes]
) -> None:
    assert taken_apart[name].system is None
    with pytest.raises(RequestError, match="no messages of role system"):
        taken_apart[name].render([{"role": "system", "content": "x"}])


@pytest.mark.parametrize("template", [NUMBERED, COUNTED, "{{ messages[-1].content }}", "{% if %}"])
def test_a_template_that_cannot_be_taken_apart_is_refused(template: str, tmp_path: Path) -> None:
    tokenizer = byte_level(tmp_path, **{"tokenizer.chat_template": template})
    with pytest.raises(RequestError) as caught:
        role_affixes(tokenizer)
    assert caught.value.code == "chat_template"


def test_without_a_template_there_are_no_roles(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        role_affixes(byte_level(tmp_path))
    assert caught.value.code == "no_chat_template"


@pytest.mark.slow
def test_the_default_model_has_roles(default_model: Path) -> None:
    tokenizer = load(default_model)
    affixes = role_affixes(tokenizer)
    assert "You are a helpful AI assistant named SmolLM" in affixes.opening
    messages = conversation(list(goldens()["texts"][:9]), None)
    expected = tokenizer.apply_chat_template(messages)
    assert affixes.render(messages, add_generation_prompt=True) == expected
