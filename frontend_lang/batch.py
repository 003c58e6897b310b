"""Many executions of one program at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Literal

from tqdm import tqdm

from phloem.frontend_lang.job import Job
from phloem.runtime.errors import RequestError

AUTO_THREADS = 96
"""Programs at work at once, unless told otherwise. Their threads mostly wait, so there may be
more of them than an engine serves together."""


def complete_all(
    jobs: Sequence[Job], num_threads: int | Literal["auto"], progress_bar: bool
) -> None:
    """Complete all ``jobs``, ``num_threads`` at once; an interrupt cancels those not done."""
    if not jobs:
        return
    pool = ThreadPoolExecutor(min(thread_count(num_threads), len(jobs)), "phloem-batch")
    try:
        futures = [pool.submit(job.complete) for job in jobs]
        for future in tqdm(as_completed(futures), total=len(jobs), disable=not progress_bar):
            future.result()
    except BaseException as error:
        for job in jobs:
            job.cancel(error)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def thread_count(num_threads: int | Literal["auto"]) -> int:
    """The number that ``num_threads`` stands for.

    Raises:
        RequestError: it is neither ``"auto"`` nor a positive integer.
    """
    if num_threads == "auto":
        return AUTO_THREADS
    if isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1:
        raise RequestError(
            f"num_threads must be 'auto' or a positive number, not {num_threads!r}",
            param="num_threads",
        )
    return num_threads
