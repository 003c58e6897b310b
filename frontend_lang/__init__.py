"""The DSL: programs of generation calls over shared prefixes."""
