"""JSON Schema, regexes and EBNF through the llguidance library."""
