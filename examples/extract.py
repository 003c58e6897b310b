"""Text to typed objects: what the model writes is read into a pydantic model, and always fits.

The schema of `Booking` becomes a grammar; at each token the model may only choose among those
that keep the output on the way to a valid object. Run: python examples/extract.py
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

import phloem as ph


class Booking(BaseModel, extra="forbid"):
    name: str = Field(max_length=30)
    city: Literal["Lisbon", "Oslo", "Rome", "Vienna"]
    nights: int = Field(ge=1, le=30)
    room: Literal["single", "double", "suite"]


EMAILS = [
    "Hello, this is Maria Lopez. I would like a double room in Lisbon for 3 nights.",
    "Good morning! My name is Erik Berg and I need a single room in Oslo, 12 nights please.",
    "Do you have a suite in Vienna for the 2 nights of our wedding? Regards, Ada Palmer",
]


@ph.function
def extract(s, email):
    # Every email continues the same instructions, which are therefore computed only once.
    s += "Write each email as JSON.\n\n"
    s += "Email: A single room in Rome for 5 nights please. Thanks, Paolo Conte\n"
    s += 'JSON: {"name": "Paolo Conte", "city": "Rome", "nights": 5, "room": "single"}\n\n'
    s += f"Email: {email}\nJSON: " + ph.gen("booking", json_schema=Booking, max_tokens=80)


def main() -> None:
    with ph.Engine() as engine:
        states = extract.run_batch([(email,) for email in EMAILS], backend=engine, temperature=0)
        for email, state in zip(EMAILS, states, strict=True):
            # `result` validates; a schema cannot say more than the grammar enforced.
            booking = state.result("booking", Booking)
            print(f"{email}\n  -> {booking!r}")


if __name__ == "__main__":
    main()
