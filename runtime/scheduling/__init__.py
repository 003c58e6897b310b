"""Which tokens of which sequences the next step computes."""
