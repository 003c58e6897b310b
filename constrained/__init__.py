"""Schemas, regexes and grammars compiled to token masks; stands alone."""
