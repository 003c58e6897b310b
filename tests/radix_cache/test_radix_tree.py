import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from radix_helpers import PAGE, SmallCache, ids, spell

from phloem.radix_cache import InvariantError, PagePool, Partial, RadixCache


def test_an_empty_tree_matches_nothing(small: SmallCache) -> None:
    match = small.match("abc")
    assert (match.length, match.pages.tolist(), match.partial) == (0, [], None)
    assert small.tree.cached_tokens == 0


def test_a_prefix_is_found_with_its_pages(small: SmallCache) -> None:
    inserted = small.put("abc")
    match = small.match("abcd")
    assert match.length == 3 * PAGE
    assert match.pages.tolist() == inserted.pages.tolist()
    assert match.pages.dtype == np.int32
    assert small.tree.cached_tokens == 3 * PAGE


def test_leaving_in_the_middle_of_an_edge_splits_it(small: SmallCache) -> None:
    pages = small.put("abcd").pages
    match = small.match("abx")
    assert match.pages.tolist() == pages[:2].tolist()
    assert [len(node.pages) for node in small.tree.walk()] == [2, 2]
    assert small.match("abcd").pages.tolist() == pages.tolist()
    small.tree.check(0)


def test_branches_share_what_they_begin_with(small: SmallCache) -> None:
    first, second = small.put("abcd"), small.put("abxy")
    assert second.known == 2 * PAGE
    assert second.pages[:2].tolist() == first.pages[:2].tolist()
    assert small.tree.evictable == small.pool.total - small.pool.free == 6
    assert small.match("abxy").pages.tolist() == second.pages.tolist()
    assert small.words() == {"abcd", "abxy"}


def test_inserting_known_tokens_keeps_the_trees_pages(small: SmallCache) -> None:
    first = small.put("abcd")
    duplicates = small.pool.allocate(3)
    second = small.tree.insert("", spell("abc"), duplicates)
    assert second.known == 3 * PAGE
    assert second.pages.tolist() == first.pages[:3].tolist()
    assert [small.pool.refcount(int(page)) for page in duplicates] == [1, 1, 1]
    small.tree.check(private=3)


def test_the_tree_takes_references_of_its_own(small: SmallCache) -> None:
    pages = small.pool.allocate(2)
    small.tree.insert("", spell("ab"), pages)
    assert [small.pool.refcount(int(page)) for page in pages] == [2, 2]
    small.pool.release(pages)
    assert small.pool.free == small.pool.total - 2


def test_the_callers_arrays_stay_the_callers(small: SmallCache) -> None:
    tokens, pages = spell("ab"), small.pool.allocate(2)
    inserted = small.tree.insert("", tokens, pages)
    tokens[:], pages[:], inserted.pages[:] = 0, 0, 0
    small.match("ab").pages[:] = 0
    assert sorted(small.match("ab").pages.tolist()) == [0, 1]


def test_inserting_nothing_is_a_match_of_nothing(small: SmallCache) -> None:
    inserted = small.tree.insert("", spell(""), ids())
    assert (inserted.known, inserted.pages.tolist()) == (0, [])
    small.tree.check(0)


@pytest.mark.parametrize("pages", [1, 3])
def test_tokens_must_fill_their_pages(small: SmallCache, pages: int) -> None:
    with pytest.raises(ValueError, match=f"{pages} pages of 8 tokens do not hold 16 tokens"):
        small.tree.insert("", spell("ab"), small.pool.allocate(pages))


def test_inserting_a_free_page_is_refused(small: SmallCache) -> None:
    held = small.pool.allocate(1)
    with pytest.raises(InvariantError, match="page 9"):
        small.tree.insert("", spell("ab"), ids(int(held[0]), 9))
    assert small.pool.refcount(int(held[0])) == 1
    assert small.words() == set()
    small.tree.check(private=1)


def test_tokens_of_another_type_are_refused(small: SmallCache) -> None:
    with pytest.raises(ValueError, match="int32"):
        small.tree.match("", np.arange(8, dtype=np.int64))


def test_namespaces_share_nothing(small: SmallCache) -> None:
    first, second = small.put("ab", "one"), small.put("ab", "two")
    assert not set(first.pages.tolist()) & set(second.pages.tolist())
    assert small.match("ab", namespace="two").pages.tolist() == second.pages.tolist()
    assert small.match("ab", namespace="").length == 0
    assert small.match("ab", tail=3, namespace="three").partial is None


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(ValueError, match="'mru' is not one of"):
        RadixCache(PagePool(1, 1), policy="mru")


def test_walk_goes_from_parents_to_children(small: SmallCache) -> None:
    small.put("abc")
    small.put("abd")
    small.put("x", "other")
    seen = []
    for node in small.tree.walk():
        assert node.parent is not None
        assert node.parent.is_root or node.parent in seen
        seen.append(node)
    assert len(seen) == 4
    assert {node.namespace for node in seen} == {"", "other"}


class TestPartial:
    """The head of a page that diverges, or in whose middle the query ends."""

    def test_of_a_sibling(self, small: SmallCache) -> None:
        pages = small.put("ab").pages
        query = np.concatenate([spell("ab", tail=5), spell("z")])
        match = small.tree.match("", query)
        assert (match.length, match.partial) == (PAGE, Partial(int(pages[1]), 5))

    def test_inside_an_edge(self, small: SmallCache) -> None:
        pages = small.put("abcd").pages
        match = small.match("abc", tail=1)
        assert (match.length, match.partial) == (2 * PAGE, Partial(int(pages[2]), 1))

    def test_of_the_first_page(self, small: SmallCache) -> None:
        pages = small.put("ab").pages
        match = small.match("a", tail=7)
        assert (match.length, match.partial) == (0, Partial(int(pages[0]), 7))

    def test_is_none_where_nothing_goes_on(self, small: SmallCache) -> None:
        small.put("ab")
        assert small.match("ab").partial is None
        assert small.match("abc").partial is None
        assert small.match("ax").partial is None

    def test_its_page_can_be_held_by_retaining_it(self, small: SmallCache) -> None:
        small.put("ab")
        partial = small.match("ab", tail=4).partial
        assert partial is not None
        held = ids(partial.page)
        small.pool.retain(held)
        assert small.tree.evict(2) == 1
        assert small.pool.refcount(partial.page) == 1
        small.tree.check(private=1)

    @given(
        cached=st.lists(st.lists(st.sampled_from([0, 1, 256]), min_size=8, max_size=24)),
        query=st.lists(st.sampled_from([0, 1, 256]), max_size=24),
    )
    def test_is_the_longest_head_of_all(self, cached: list[list[int]], query: list[int]) -> None:
        pool = PagePool(200, PAGE)
        tree = RadixCache(pool)
        prefix_of = {}
        for tokens in cached:
            whole = tokens[: len(tokens) // PAGE * PAGE]
            pages = pool.allocate(len(whole) // PAGE)
            inserted = tree.insert("", np.array(whole, dtype=np.int32), pages)
            for at, page in enumerate(inserted.pages):
                prefix_of[int(page)] = whole[: (at + 1) * PAGE]
        match = tree.match("", np.array(query, dtype=np.int32))
        found = match.length + (match.partial.tokens if match.partial else 0)
        assert found == max((common(query, run) for run in prefix_of.values()), default=0)
        if match.partial:
            assert prefix_of[match.partial.page][:found] == query[:found]
            assert 0 < match.partial.tokens < PAGE


def common(a: list[int], b: list[int]) -> int:
    pairs = list(zip(a, b, strict=False))
    return next((i for i, (x, y) in enumerate(pairs) if x != y), len(pairs))
