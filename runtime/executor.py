"""Run a StepPlan on the model: one entry for prefill, decode, scoring and all between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from phloem.kernels.batch import RaggedBatch
from phloem.kernels.ops import Ops, SamplingBatch
from phloem.radix_cache import KVPool
from phloem.runtime.models import Model
from phloem.runtime.plan import (
    NO_FLOATS,
    NO_LONGS,
    LogitEdits,
    Masks,
    SamplePlan,
    ScorePlan,
    StepPlan,
    StepResult,
)

NOT_SCORED = (NO_FLOATS, NO_LONGS, NO_FLOATS, NO_FLOATS)


class Executor:
    """The model, its KV pool and the ops, on one device."""

    def __init__(self, model: Model, ops: Ops, kv: KVPool) -> None:
        self.model = model
        self.ops = ops
        self.kv = kv
        self.vocab_size = model.config.vocab_size
        self._on_cpu = kv.device.type == "cpu"
        layers = [kv.layer(index) for index in range(model.kv_geometry.num_layers)]
        self._step = ops.compile(model.logits, layers)

    @torch.inference_mode()
    def execute(self, plan: StepPlan, masks: Callable[[], Masks | None]) -> StepResult:
        """Compute the step.

        ``masks`` is called after the forward pass was started, so that on an asynchronous device
        the grammars' work on the CPU goes on beside it.
        """
        if len(plan.copy_source):
            self.kv.copy_pages(plan.copy_source, plan.copy_target)
        logits = self._step(
            self._to_device(plan.token_ids), self._batch(plan), self._to_device(plan.logit_rows)
        )
        return self._choose(logits, plan, masks())

    def _batch(self, plan: StepPlan) -> RaggedBatch:
        return RaggedBatch(
            positions=self._to_device(plan.positions),
            slots=self._to_device(plan.slots),
            query_start=self._to_device(plan.query_start),
            kv_len=self._to_device(plan.kv_len),
            page_table=self._to_device(plan.page_table),
            page_size=plan.page_size,
        )

    def _choose(self, logits: Tensor, plan: StepPlan, masks: Masks | None) -> StepResult:
        scores = plan.scores
        raw = logits[self._to_device(scores.rows)] if len(scores.rows) else None
        sampled = self._sample(logits[: len(plan.sampling.temperature)], plan.sampling, masks)
        if raw is None:
            return StepResult(sampled.cpu().numpy(), *NOT_SCORED)
        return StepResult(sampled.cpu().numpy(), *self._score(raw, sampled, scores))

    def _sample(self, logits: Tensor, plan: SamplePlan, masks: Masks | None) -> Tensor:
        """Edit, mask and sample the rows in place."""
        if len(logits) == 0:
            return torch.empty(0, dtype=torch.int64)
        self._edit(logits, plan.edits)
        if masks is not None:
            self.ops.apply_mask(logits, self._to_device(masks.bits), self._to_device(masks.rows))
        batch = SamplingBatch(
            temperature=self._to_device(plan.temperature),
            top_k=self._to_device(plan.top_k),
            top_p=self._to_device(plan.top_p),
            min_p=self._to_device(plan.min_p),
            seed=self._to_device(plan.seed),
            position=self._to_device(plan.position),
        )
        return self.ops.sample(logits, batch)

    def _edit(self, logits: Tensor, edits: LogitEdits) -> None:
        if len(edits.repetition_rows):
            where = self._to_device(edits.repetition_rows), self._to_device(edits.repetition_tokens)
            value, factor = logits[where], self._to_device(edits.repetition_values)
            logits[where] = torch.where(value > 0, value / factor, value * factor)
        if len(edits.added_rows):
            where = self._to_device(edits.added_rows), self._to_device(edits.added_tokens)
            logits.index_put_(where, self._to_device(edits.added_values), accumulate=True)

    def _score(self, raw: Tensor, sampled: Tensor, scores: ScorePlan) -> list[NDArray[Any]]:
        """Log-probabilities from the unedited logits, in the order of StepResult's fields."""
        logprobs = torch.log_softmax(raw, dim=-1)
        targets, rows = self._to_device(scores.targets), self._to_device(scores.rows)
        if len(sampled):
            own = sampled[rows.clamp(max=len(sampled) - 1)].clamp(min=0)  # NO_TOKEN
            targets = torch.where(targets < 0, own, targets)
        wanted = logprobs.gather(1, targets[:, None])[:, 0]
        top = torch.topk(logprobs, scores.top, dim=-1)
        chosen = logprobs[
            self._to_device(scores.chosen_rows), self._to_device(scores.chosen_tokens)
        ]
        return [part.cpu().numpy() for part in (wanted, top.indices, top.values, chosen)]

    def _to_device(self, array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor if self._on_cpu else tensor.to(self.kv.device)
