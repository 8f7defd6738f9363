"""Published reports, and runs compared with them: a module a study, named by an entry point.

docs/extending.md says what a module of the group ``fwbench.studies`` defines.
"""
