"""A judge: essays graded on several aspects in parallel forks, and compared by all of them.

The forks of an essay share its text, and all essays share the examples before it: each is
computed once. `select` compares the grades by their probability, and `meta_info` has the
log-probabilities, which say more than the grade alone. Run: python examples/judge.py
"""

from __future__ import annotations

import phloem as ph

ASPECTS = ("Grammar", "Facts", "Clarity")
EXAMPLES = """Essays and their grades.

Essay: Rivers flow from the hills down to the sea. Fish live in them, and many towns were built
beside them.
Grammar: good
Facts: good
Clarity: good

Essay: My computer are broken again. Dogs is able to fly and water are dry.
Grammar: bad
Facts: bad
Clarity: bad

"""
ESSAYS = {
    "careful": "Trees clean the air and give shade. Their roots hold the soil together, and birds "
    "nest in their branches. A city with many trees is cooler in summer.",
    "careless": "Me like pizza much. Moon are made from cheese, everyone know. I eats ten pizza "
    "all day and the fish has walked to home.",
}


@ph.function
def judge(s, essay):
    s += EXAMPLES + f"Essay: {essay}\n"
    forks = s.fork(len(ASPECTS))
    forks += [f"{aspect}:" for aspect in ASPECTS]
    forks += ph.select("grade", [" good", " bad"])
    forks.join()  # s["grade"] is now the list of all grades
    return [log_odds(meta) for meta in s.get_meta_info("grade")]


def log_odds(meta):
    good, bad = meta["normalized_prompt_logprobs"]
    return good - bad


def main() -> None:
    with ph.Engine() as engine:
        states = judge.run_batch([(essay,) for essay in ESSAYS.values()], backend=engine)
        odds = {name: state.ret_value for name, state in zip(ESSAYS, states, strict=True)}
    print("log-odds of a good grade: " + ", ".join(ASPECTS))
    for name, values in odds.items():
        print(f"  {name:9}", *(f"{value:+.2f}" for value in values), f" sum {sum(values):+.2f}")
    print("the better essay:", max(odds, key=lambda name: sum(odds[name])))


if __name__ == "__main__":
    main()
