"""The right-sizing report: terminal, HTML, Markdown and JSON, in English and Spanish.

`Report` is what is told. A section is one module under `sections/` (a dataclass and how it is
made) with a template of the same name beside it; a new one is found without being listed.
"""
