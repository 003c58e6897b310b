"""From sequences' sampling parameters to plain arrays, and from logits to tokens."""
