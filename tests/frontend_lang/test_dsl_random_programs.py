"""Random programs: the concurrent interpreter does what running line by line would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ScriptedClient

import phloem as ph

WORDS = ("oak", "ash", "a long elm", "fir")


def word(text: str) -> str:
    return WORDS[crc32(text.encode()) % len(WORDS)]


def reply(text: str, index: int) -> str:
    """After the last "[", a word that depends on all text up to it."""
    base, mark, said = text.rpartition("[")
    return word(base + mark)[len(said) :] if mark else ""


@dataclass
class Model:
    """What a state should be."""

    text: str = ""
    variables: dict[str, object] = field(default_factory=dict)

    def copy(self) -> Model:
        return Model(self.text, dict(self.variables))


def run(steps, s, model: Model) -> None:
    """Do ``steps`` on a state and, line by line, on its model."""
    for kind, name, inner in steps:
        match kind:
            case "text":
                s += name + " "
                model.text += name + " "
            case "gen":
                s += "[" + ph.gen(name) + "]"
                model.variables[name] = word(model.text + "[")
                model.text += f"[{model.variables[name]}]"
            case "select":
                wanted = word(model.text + "[")
                s += "[" + ph.select(name, ["larch", wanted]) + "]"
                model.variables[name] = wanted
                model.text += f"[{wanted}]"
            case "set":
                s[name] = len(model.text)
                model.variables[name] = len(model.text)
            case "read":
                assert s.text() == model.text
                assert {key: s[key] for key in model.variables} == model.variables
            case "scope":
                start = len(model.text)
                with s.var_scope(name):
                    run(inner, s, model)
                model.variables[name] = model.text[start:]
            case "copy":
                run(inner, s.copy(), model.copy())
            case "gather" | "append":
                fork(kind, inner, s, model)


def fork(kind, inner, s, model: Model) -> None:
    forks, models = s.fork(2), [model.copy(), model.copy()]
    for index, (state, each) in enumerate(zip(forks, models, strict=True)):
        run([("text", f"fork{index}", ()), *inner], state, each)
    if kind == "append":
        forks.join("concate_and_append")
        model.text += "".join(each.text[len(model.text) :] for each in models)
        return
    forks.join()
    for name in models[0].variables:
        values = [each.variables[name] for each in models]
        if made_in(inner, name):
            model.variables[name] = values


def made_in(steps, name: str) -> bool:
    return any(
        (kind in ("gen", "select", "set", "scope") and made == name)
        or (kind in ("scope", "gather") and made_in(inner, name))
        for kind, made, inner in steps
    )


names = st.sampled_from("xyz")
simple = st.tuples(st.sampled_from(["text", "gen", "select", "set", "read"]), names, st.just(()))
nested = st.recursive(
    simple,
    lambda inner: st.tuples(
        st.sampled_from(["scope", "copy", "gather", "append"]), names, st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(nested, max_size=8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_programs_do_what_they_say_in_order(tokenizer, steps, stream):
    model = Model()

    @ph.function
    def program(s):
        run(steps, s, model)

    state = program.run(backend=ScriptedClient(tokenizer, reply), stream=stream)
    assert state.error() is None
    assert state.text() == model.text
    assert "".join(state.text_iter()) == model.text
    assert {name: state[name] for name in model.variables} == model.variables
