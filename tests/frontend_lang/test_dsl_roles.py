"""Chat turns: a program's text is what the model's chat template renders."""

from __future__ import annotations

import pytest
from scripted import ScriptedClient, script
from tiny import CHAT_TEMPLATE, write_tokenizer

import phloem as ph
from phloem.runtime.text.folder import folder_tokenizer

WITH_DEFAULT = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nBe brief.<|im_end|>\n{% endif %}"
    + CHAT_TEMPLATE
)
WITHOUT_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}"
ANSWER = "<|im_end|>\n<|im_start|>assistant\n"
ANSWERS = {f"hi{ANSWER}": "well, hello, you", f"bye{ANSWER}": "ciao"}


@pytest.fixture
def client_with(tmp_path):
    """Make a scripted client whose tokenizer has the given chat template."""

    def make(template: str | None) -> ScriptedClient:
        write_tokenizer(tmp_path)
        path = tmp_path / "chat_template.jinja"
        path.unlink(missing_ok=True)
        if template is not None:
            path.write_text(template)
        return ScriptedClient(folder_tokenizer(tmp_path), script(ANSWERS))

    return make


@ph.function
def conversation(s):
    s += ph.user("hi")
    with s.assistant():
        s += "well, " + ph.gen("first", stop=",")
    s.user("bye")
    s += ph.assistant_begin() + ph.gen("second") + ph.assistant_end()


@pytest.mark.parametrize("template", [CHAT_TEMPLATE, WITH_DEFAULT], ids=["plain", "default"])
def test_the_text_is_what_the_template_renders(client_with, template):
    client = client_with(template)
    state = conversation.run(backend=client)
    messages = state.messages()
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert [message["content"] for message in messages] == ["hi", "well, hello", "bye", "ciao"]
    rendered = client.tokenizer.apply_chat_template(messages, add_generation_prompt=False)
    assert state.text() == rendered


def test_a_system_turn_replaces_the_default_one(client_with):
    @ph.function
    def program(s):
        s.system("Be long.")
        s += ph.user("hi") + ph.assistant(ph.gen("x"))

    client = client_with(WITH_DEFAULT)
    state = program.run(backend=client)
    assert "Be brief" not in state.text()
    assert state["x"] == "well, hello, you"
    assert state.text() == client.tokenizer.apply_chat_template(
        state.messages(), add_generation_prompt=False
    )


def test_forks_go_on_in_their_parents_turn(client_with):
    @ph.function
    def program(s):
        s += ph.user("hi")
        with s.assistant():
            forks = s.fork(2)
            forks += [ph.gen("x"), "no"]
            forks.join("concate_and_append")

    state = program.run(backend=client_with(CHAT_TEMPLATE))
    assert state.messages()[-1] == {"role": "assistant", "content": "well, hello, youno"}


def late_system(s):
    s += ph.user("hi") + ph.system("late")


def nested(s):
    with s.user():
        s += ph.assistant("inside")


def left_open(s):
    s += ph.user_begin() + "hi" + ph.assistant_end()


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (late_system, "can only be the first"),
        (nested, "cannot nest"),
        (left_open, "'user' is open"),
    ],
)
def test_turns_in_disorder_are_errors(client_with, func, message):
    state = ph.function(func).run(backend=client_with(CHAT_TEMPLATE))
    assert isinstance(state.error(), ph.ProgramError)
    with pytest.raises(ph.ProgramError, match=message):
        state.text()


def test_an_exception_in_a_turn_is_not_covered_up(client_with):
    @ph.function
    def program(s):
        with s.user():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        program.run(backend=client_with(CHAT_TEMPLATE))


@pytest.mark.parametrize(
    ("template", "func"), [(None, conversation), (WITHOUT_SYSTEM + CHAT_TEMPLATE, "system")]
)
def test_roles_that_the_model_does_not_know_are_refused(client_with, template, func):
    @ph.function
    def with_system(s):
        s += ph.system("be") + ph.user("hi")

    program = with_system if func == "system" else func
    with pytest.raises(ph.RequestError, match="chat template"):
        program.run(backend=client_with(template)).text()
