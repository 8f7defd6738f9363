"""A report as a file: HTML, Markdown, CSV."""
