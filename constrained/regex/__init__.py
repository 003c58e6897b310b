"""Regular expressions: one reading, whatever dialect the sender had in mind."""

from phloem.constrained.regex.anchors import whole
from phloem.constrained.regex.look_ahead import parted, searched
from phloem.constrained.regex.parser import parse
from phloem.constrained.regex.render import render

__all__ = ["parse", "parted", "render", "searched", "whole"]
