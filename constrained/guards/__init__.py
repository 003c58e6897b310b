"""What no automaton can say, checked along the text while it is written."""
