"""An agent: the model chooses tools, the program runs them and tells the results, to an answer.

Each step is JSON under a schema, so there is always a known tool with an input to call. The
conversation only grows, so each call computes nothing but what is new.
Run: python examples/agent.py
"""

from __future__ import annotations

import ast
import json
import operator

import phloem as ph

LEGS = {"ant": 6, "spider": 8, "horse": 4, "crab": 10, "stool": 3}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def lookup(animal: str) -> str:
    name = animal.lower().strip().removesuffix("s")
    return f"one {name} has {LEGS[name]} legs" if name in LEGS else f"{animal} is not known"


def calculate(expression: str) -> str:
    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(int(number)):
                return number
            case ast.BinOp(left, op, right):
                return OPERATORS[type(op)](value(left), value(right))
        raise ValueError

    try:
        return str(value(ast.parse(expression, mode="eval").body))
    except (SyntaxError, ValueError, KeyError):
        return "cannot calculate that"


TOOLS = {"lookup": lookup, "calculate": calculate}

EXAMPLES = """Answer questions with the tools lookup and calculate.

Question: How many legs do 7 ants have?
Step: {"tool": "lookup", "input": "ant"}
Result: one ant has 6 legs
Step: {"tool": "calculate", "input": "7 * 6"}
Result: 42
Step: {"tool": "answer", "input": "7 ants have 42 legs."}

Question: How many legs do 5 stools have?
Step: {"tool": "lookup", "input": "stool"}
Result: one stool has 3 legs
Step: {"tool": "calculate", "input": "5 * 3"}
Result: 15
Step: {"tool": "answer", "input": "5 stools have 15 legs."}

"""


def step_schema(tools):
    return {
        "type": "object",
        "properties": {"tool": {"enum": tools}, "input": {"type": "string", "maxLength": 40}},
        "required": ["tool", "input"],
        "additionalProperties": False,
    }


@ph.function
def agent(s, question, max_steps=5):
    s += EXAMPLES + f"Question: {question}\n"
    tools = list(TOOLS)
    for _ in range(max_steps):
        s += "Step: " + ph.gen("step", json_schema=step_schema(tools), max_tokens=60) + "\n"
        step = json.loads(s["step"])
        print(f"  {step['tool']}({step['input']!r})")
        if step["tool"] == "answer":
            return step["input"]
        result = TOOLS[step["tool"]](step["input"])
        print(f"    = {result}")
        s += f"Result: {result}\n"
        if step["tool"] == "calculate":
            # The schema may change as the program goes on: no answer before a calculation.
            tools = ["answer", *TOOLS]
    return "no answer"


def main() -> None:
    with ph.Engine() as engine:
        for question in ("How many legs do 12 spiders have?", "How many legs do 9 horses have?"):
            print(question)
            print("  ->", agent.run(question, backend=engine, temperature=0).ret_value)


if __name__ == "__main__":
    main()
