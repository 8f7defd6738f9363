"""Kinds of charts, drawn by pygal as SVG that stands in a page: a module a kind, with `draw()`."""
