"""The compile service: off the caller's thread, each grammar once, results and failures cached."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from phloem.constrained import bitmask
from phloem.constrained.admission import check_source
from phloem.constrained.cache import GrammarCache
from phloem.constrained.engines import BACKENDS, GrammarBackend
from phloem.constrained.engines.tokenizer import Tokenizer
from phloem.constrained.errors import DeadEnd, GrammarError, GrammarLimit
from phloem.constrained.limits import DEFAULT_LIMITS, Limits
from phloem.constrained.matcher import Grammar
from phloem.constrained.spec import GrammarSpec
from phloem.constrained.vocabulary import Vocabulary

_MOST_FAILURES = 2_000


class GrammarCompiler:
    """Compiles grammars for one vocabulary. Thread-safe.

    ``backend`` chooses the engines. A kind of grammar that they do not serve is refused.

    At any time a key is in one place: compiling, compiled (least recently used ones go first) or
    failed (forgotten after ``failure_ttl_s``).

    Raises:
        ImportError: the backend's package is not installed.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        backend: GrammarBackend = "auto",
        cache_bytes: int = 256 * 1024 * 1024,
        cache_entries: int = 2_000,
        failure_ttl_s: float = 60.0,
        workers: int = 2,
        limits: Limits = DEFAULT_LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        tokenizer = Tokenizer(vocabulary)
        engines = BACKENDS[backend]
        made = {engine: engine(tokenizer, limits) for engine in set(engines.values())}
        self._engines = {kind: made[engine] for kind, engine in engines.items()}
        self._backend = backend
        self._vocabulary = vocabulary
        self._limits = limits
        self._failure_ttl_s = failure_ttl_s
        self._clock = clock
        self._lock = threading.Lock()
        self._cache = GrammarCache(cache_bytes, cache_entries)
        self._failures: dict[Hashable, tuple[float, GrammarError]] = {}
        self._compiling: dict[Hashable, Future[Grammar]] = {}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="grammar")

    def compile(self, spec: GrammarSpec) -> Grammar:
        """The grammar of ``spec``, waiting for it.

        Raises:
            GrammarError: it cannot be compiled; also from the cache.
        """
        return self.submit(spec).result()

    def submit(self, spec: GrammarSpec) -> Future[Grammar]:
        """The grammar of ``spec`` in time; its exception is a `GrammarError`.

        Equal specs are compiled once, however many wait. The future is the caller's own, who may
        cancel it.
        """
        key = self._key(spec)
        with self._lock:
            grammar = self._cache.get(key)
            if grammar is not None:
                return _done(grammar)
            error = self._recent_failure(key)
            if error is not None:
                return _failed(error)
            shared = self._compiling.get(key)
            if shared is None:
                shared = self._pool.submit(self._compile, spec, key)
                self._compiling[key] = shared
        return _follow(shared)

    def close(self) -> None:
        """Stop: what compiles is finished, what waits is cancelled, nothing new is taken."""
        self._pool.shutdown(cancel_futures=True)

    def _key(self, spec: GrammarSpec) -> Hashable:
        # A text over the limit is refused unread; parsing it for a canonical key would be a waste.
        return spec.key if len(spec.text) <= self._limits.text_bytes else spec

    def _compile(self, spec: GrammarSpec, key: Hashable) -> Grammar:
        """In a worker: compile and move ``key`` to where it then belongs."""
        grammar, failure = None, None
        try:
            grammar = self._build(spec)
            return grammar
        except GrammarError as error:
            failure = error
            raise
        finally:
            with self._lock:
                del self._compiling[key]
                if grammar is not None:
                    self._cache.put(key, grammar)
                elif failure is not None:
                    self._remember_failure(key, failure)

    def _build(self, spec: GrammarSpec) -> Grammar:
        started = time.perf_counter()
        check_source(spec, self._limits)
        if spec.kind not in self._engines:
            served = ", ".join(self._engines)
            raise GrammarError(
                f"the grammar backend {self._backend!r} does not serve {spec.kind!r}, only {served}"
            )
        compiled = self._engines[spec.kind].compile(spec)
        grammar = Grammar(
            spec=spec,
            nbytes=compiled.nbytes,
            compile_s=time.perf_counter() - started,
            warnings=compiled.warnings,
            vocabulary=self._vocabulary,
            start=compiled.start,
        )
        self._check_satisfiable(grammar)
        return grammar

    def _check_satisfiable(self, grammar: Grammar) -> None:
        """Fill one mask, which finds grammars that no text can begin to satisfy."""
        row = bitmask.allocate(1, self._vocabulary.size)[0]
        try:
            grammar.matcher().fill(row)
        except DeadEnd as error:
            raise GrammarError("no text satisfies this grammar") from error
        except GrammarLimit as error:
            raise GrammarError(str(error), code="grammar_too_complex") from error

    def _recent_failure(self, key: Hashable) -> GrammarError | None:
        expires, error = self._failures.get(key, (self._clock(), None))
        return error if self._clock() < expires else None

    def _remember_failure(self, key: Hashable, error: GrammarError) -> None:
        """All failures live equally long, so the first in the dict is the first to expire."""
        now = self._clock()
        self._failures.pop(key, None)
        self._failures[key] = (now + self._failure_ttl_s, error)
        for oldest, (expires, _) in list(self._failures.items()):
            if expires > now and len(self._failures) <= _MOST_FAILURES:
                break
            del self._failures[oldest]


def _done(grammar: Grammar) -> Future[Grammar]:
    future: Future[Grammar] = Future()
    future.set_result(grammar)
    return future


def _failed(error: GrammarError) -> Future[Grammar]:
    future: Future[Grammar] = Future()
    future.set_exception(error.again())
    return future


def _follow(shared: Future[Grammar]) -> Future[Grammar]:
    """A future of its own with the outcome of ``shared``."""
    follower: Future[Grammar] = Future()

    def copy_outcome(done: Future[Grammar]) -> None:
        if done.cancelled():
            follower.cancel()
        if not follower.set_running_or_notify_cancel():
            return
        error = done.exception()
        if error is None:
            follower.set_result(done.result())
        else:
            follower.set_exception(error)

    shared.add_done_callback(copy_outcome)
    return follower
