"""Plain torch forms of the ops: the definition of correct."""
