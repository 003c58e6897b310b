"""Programs on a server, through its native HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from phloem.frontend_lang.backends.base import Call, Completion, OnText
from phloem.frontend_lang.backends.transport import Transport
from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import SamplingParams

if TYPE_CHECKING:
    from phloem.runtime.text.roles import RoleAffixes
    from phloem.runtime.text.tokenizer import Tokenizer


class RuntimeEndpoint:
    """A ``Backend`` over a Phloem server.

    Args:
        base_url: such as ``http://localhost:30000``.
        api_key: sent as a bearer token.
        timeout: most seconds to wait for an answer or, in a stream, for its next piece.
        cache_salt, extra_key: programs share cached prefixes only with requests of the same.

    Raises:
        RequestError: ``base_url`` is no HTTP address.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: float = 600.0,
        cache_salt: str = "",
        extra_key: str = "",
    ) -> None:
        self._transport = Transport(base_url, api_key, timeout)
        self._labels = {"cache_salt": cache_salt, "extra_key": extra_key}
        self._info: dict[str, Any] | None = None
        self._affixes: RoleAffixes | None = None

    async def affixes(self) -> RoleAffixes:
        """See ``Backend.affixes``."""
        if self._affixes is None:
            from phloem.runtime.text.roles import role_affixes

            # The affixes are found by rendering alone.
            template = cast("Tokenizer", _ServedTemplate(await self._model_info()))
            self._affixes = role_affixes(template)
        return self._affixes

    async def encode(self, text: str) -> list[int]:
        """See ``Backend.encode``."""
        reply = await self._transport.post("/tokenize", {"prompt": text})
        ids: list[int] = reply["tokens"]
        return ids or (await self._model_info())["eos_token_ids"][:1]

    async def generate(self, call: Call, on_text: OnText | None = None) -> list[Completion]:
        """See ``Backend.generate``."""
        prompt = {"text": call.prompt} if call.prompt else {"input_ids": await self.encode("")}
        body: dict[str, Any] = {
            **prompt,
            "sampling_params": _sampling_fields(call.sampling),
            "program": call.program,
            **self._labels,
        }
        if call.return_logprob:
            body |= {
                "return_logprob": True,
                "return_text_in_logprobs": True,
                "logprob_start_len": -1 if call.logprob_start is None else call.logprob_start,
                "top_logprobs_num": call.top_logprobs,
            }
        if on_text is None:
            reply = await self._transport.post("/generate", body)
            results = reply if isinstance(reply, list) else [reply]
        else:
            results = await self._stream(body, on_text)
        return [Completion(each["text"], each["meta_info"]) for each in results]

    async def score(self, input_ids: list[int], start: int) -> list[float]:
        """See ``Backend.score``."""
        body = {
            "input_ids": input_ids,
            "sampling_params": {"max_new_tokens": 0},
            "return_logprob": True,
            "logprob_start_len": start,
            **self._labels,
        }
        reply = await self._transport.post("/generate", body)
        return [logprob for logprob, _, _ in reply["meta_info"]["input_token_logprobs"]]

    async def flush_cache(self) -> bool:
        """See ``Backend.flush_cache``."""
        try:
            await self._transport.post("/flush_cache", {})
        except RequestError as error:
            if error.code == "busy":
                return False
            raise
        return True

    async def _model_info(self) -> dict[str, Any]:
        if self._info is None:
            self._info = await self._transport.get("/get_model_info")
        return self._info

    async def _stream(self, body: dict[str, Any], on_text: OnText) -> list[Any]:
        """The last results by index; events carry each sequence's whole text so far."""
        latest: dict[int, Any] = {}
        told = 0
        async for result in self._transport.stream("/generate", {**body, "stream": True}):
            index = result.get("index", 0)
            latest[index] = result
            if index == 0:
                on_text(result["text"][told:])
                told = len(result["text"])
        return [latest[index] for index in sorted(latest)]


def _sampling_fields(sampling: SamplingParams) -> dict[str, Any]:
    """``sampling_params`` of the native API, where a constraint has its kind as its name."""
    fields: dict[str, Any] = msgspec.to_builtins(sampling, str_keys=True)
    fields["max_new_tokens"] = sampling.max_new_tokens
    if sampling.constraint is not None:
        del fields["constraint"]
        fields[sampling.constraint.kind] = sampling.constraint.text
    return fields


class _ServedTemplate:
    """The chat template in a server's model info, in the role of the tokenizer that has it."""

    def __init__(self, info: dict[str, Any]) -> None:
        from phloem.runtime.text.chat_template import ChatTemplate

        if not info["chat_template"]:
            raise RequestError(
                "the served model has no chat template; write a program without roles",
                code="no_chat_template",
            )
        # The server itself puts a BOS token before a text, where the model wants one.
        variables = {"bos_token": "", "eos_token": info.get("eos_token") or ""}
        self._template = ChatTemplate(info["chat_template"], variables)

    def apply_chat_template(
        self, messages: list[dict[str, str]], *, add_generation_prompt: bool
    ) -> str:
        return self._template.render(messages, add_generation_prompt=add_generation_prompt)
