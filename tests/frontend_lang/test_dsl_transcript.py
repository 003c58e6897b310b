"""The text of a state and its chat turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phloem.frontend_lang.errors import ProgramError
from phloem.frontend_lang.transcript import Transcript

texts = st.lists(st.text(max_size=5), max_size=5)


def user_turn(transcript: Transcript, content: str) -> Transcript:
    return transcript.begin("user", "<u>").append(content).end("user", "</u>")


def test_a_turn_becomes_a_message_without_its_affixes():
    transcript = user_turn(Transcript("x"), "hi")
    assert transcript.text == "x<u>hi</u>"
    assert transcript.messages == ({"role": "user", "content": "hi"},)


def test_roles_do_not_nest_and_end_only_what_is_open():
    open_turn = Transcript().begin("user", "<u>")
    with pytest.raises(ProgramError, match=r"'assistant' begins inside 'user'"):
        open_turn.begin("assistant", "<a>")
    with pytest.raises(ProgramError, match=r"'user' is open"):
        open_turn.end("assistant", "</a>")
    with pytest.raises(ProgramError, match="no role is open"):
        Transcript().end("user", "</u>")


def test_scopes_nest_and_yield_their_text():
    transcript = Transcript("0").enter("outer").append("1").enter("inner").append("2")
    with pytest.raises(ProgramError, match="outer"):
        transcript.leave("outer")
    transcript, inner = transcript.leave("inner")
    transcript, outer = transcript.append("3").leave("outer")
    assert (inner, outer, transcript.text) == ("2", "123", "0123")


@given(st.text(max_size=5), texts, texts)
def test_grafts_append_each_branch_in_order(start, left, right):
    base = user_turn(Transcript(start), "question")
    branches = []
    for contents in (left, right):
        branch = base
        for content in contents:
            branch = user_turn(branch, content)
        branches.append(branch)
    joined = base.append("-").graft(branches[0], base).graft(branches[1], base)
    added = "".join(f"<u>{content}</u>" for content in left + right)
    assert joined.text == base.text + "-" + added
    assert [m["content"] for m in joined.messages] == ["question", *left, *right]


def test_a_branch_that_left_its_parents_turn_cannot_be_grafted():
    base = Transcript().begin("assistant", "<a>")
    assert base.graft(base.append("x"), base).end("assistant", "").messages[0]["content"] == "x"
    with pytest.raises(ProgramError, match="in the turn"):
        base.graft(base.end("assistant", "</a>"), base)
