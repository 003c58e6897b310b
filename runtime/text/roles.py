"""Take a chat template apart into what stands before and after each role's content.

With the affixes, a conversation can be written piece by piece, each piece appended to a prefix
that is already cached. They are found by rendering conversations of marked messages, and proved
by rendering longer ones: a template that treats a message by what surrounds it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from phloem.runtime.errors import RequestError
from phloem.runtime.text.tokenizer import Tokenizer

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Affixes:
    """What a template puts around one role's content.

    ``strips``: it drops white space at both ends of the content.
    """

    prefix: str
    suffix: str
    strips: bool

    def around(self, content: str) -> str:
        return self.prefix + (content.strip() if self.strips else content) + self.suffix


@dataclass(frozen=True, slots=True)
class RoleAffixes:
    """A chat template taken apart.

    Attributes:
        opening: stands before a conversation that begins with no system message: a BOS token, a
            default system text.
        system: its prefix includes what opens a conversation; None if the template has no
            system message of its own. A system message comes first.
        generation_prompt: stands before an answer that is to be generated.
    """

    opening: str
    system: Affixes | None
    user: Affixes
    assistant: Affixes
    generation_prompt: str

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = False) -> str:
        """What the template renders."""
        with_system = bool(messages) and messages[0]["role"] == "system"
        parts = [] if with_system else [self.opening]
        parts += [self._of(message["role"]).around(message["content"]) for message in messages]
        return "".join(parts) + (self.generation_prompt if add_generation_prompt else "")

    def _of(self, role: str) -> Affixes:
        affixes = {"system": self.system, "user": self.user, "assistant": self.assistant}.get(role)
        if affixes is None:
            raise RequestError(f"the chat template has no messages of role {role}", param="role")
        return affixes


def role_affixes(tokenizer: Tokenizer) -> RoleAffixes:
    """The affixes of the model's chat template.

    They reproduce what ``apply_chat_template`` renders for conversations in which user and
    assistant take turns, after a system message or not, up to the prompt for an answer. Where a
    template renders the last answer unlike earlier ones, as reasoning models do, ``assistant`` is
    how earlier ones look.

    Raises:
        RequestError: there is no template, or it cannot be taken apart.
    """
    probe = _Probe(tokenizer)
    found = _from_turns(probe)
    found = _with_system(probe, found)
    _prove(probe, found)
    return found


class _Probe:
    """Renders conversations given as letters: s, u, a for a message of that role."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def render(self, turns: str, *, pad: str = "", prompt: bool = False) -> str:
        return self._tokenizer.apply_chat_template(
            _messages(turns, pad), add_generation_prompt=prompt
        )

    def gaps(self, turns: str, *, prompt: bool = False) -> list[str]:
        """The text before, between and after the contents of the messages."""
        text = self.render(turns, prompt=prompt)
        gaps = []
        for message in _messages(turns):
            gap, mark, text = text.partition(message["content"])
            if not mark:
                raise _refusal(f"it drops the content of a message ({message['role']})")
            gaps.append(gap)
        return [*gaps, text]

    def strips(self, turns: str, role: str) -> bool:
        """Whether content of ``role`` loses the white space at its ends."""
        marked = [m["content"] for m in _messages(turns, "  ") if m["role"] == role]
        return marked[0] not in self.render(turns, pad="  ")


def _messages(turns: str, pad: str = "") -> list[Message]:
    """One message per letter, its content a mark that no template knows, between ``pad``."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return [
        {"role": roles[letter], "content": f"{pad}mark{i}x{letter}{pad}"}
        for i, letter in enumerate(turns)
    ]


def _from_turns(probe: _Probe) -> RoleAffixes:
    before_user, user_to_answer, answer_to_user, after_user = probe.gaps("uau")
    _, prompted = probe.gaps("u", prompt=True)
    *_, after_answer = probe.gaps("ua")
    user_suffix = _shared_start(after_user, user_to_answer, prompted)
    answer_suffix = _shared_start(after_answer, answer_to_user)
    user_prefix = answer_to_user.removeprefix(answer_suffix)
    return RoleAffixes(
        opening=_without_end(before_user, user_prefix),
        system=None,
        user=Affixes(user_prefix, user_suffix, probe.strips("u", "user")),
        assistant=Affixes(
            user_to_answer.removeprefix(user_suffix),
            answer_suffix,
            probe.strips("uau", "assistant"),
        ),
        generation_prompt=prompted.removeprefix(user_suffix),
    )


def _shared_start(ending: str, *others: str) -> str:
    """The suffix of a role: how the text after it begins, at the end and elsewhere.

    Templates may end a conversation that is not to go on with something more, an EOS token;
    then the bracket that opens what follows is not part of the suffix.
    """
    columns = zip(ending, *others, strict=False)
    shared = "".join(chars[0] for chars in takewhile(lambda chars: len(set(chars)) == 1, columns))
    return shared if shared == ending else shared.rstrip("<|[")


def _with_system(probe: _Probe, found: RoleAffixes) -> RoleAffixes:
    """Add the system role, if the template keeps it apart from the first user message."""
    try:
        before_system, system_to_user, _ = probe.gaps("su")
        suffix = _without_end(system_to_user, found.user.prefix)
    except RequestError:
        return found
    system = Affixes(before_system, suffix, probe.strips("su", "system"))
    return RoleAffixes(found.opening, system, found.user, found.assistant, found.generation_prompt)


def _prove(probe: _Probe, found: RoleAffixes) -> None:
    """Compare with the template on conversations that the affixes were not taken from."""
    starts = ("", "s") if found.system else ("",)
    for turns in (start + rest for start in starts for rest in ("u", "uau", "uauauau")):
        for pad in ("", " \n"):
            rendered = found.render(_messages(turns, pad), add_generation_prompt=True)
            if rendered != probe.render(turns, pad=pad, prompt=True):
                raise _refusal(f"it renders the turns {turns} by more than their roles")


def _without_end(text: str, end: str) -> str:
    if not text.endswith(end):
        raise _refusal("what it puts before a message depends on more than the role")
    return text.removesuffix(end)


def _refusal(reason: str) -> RequestError:
    return RequestError(f"the chat template cannot be taken apart: {reason}", code="chat_template")
