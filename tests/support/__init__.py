"""Helpers of the tests: fakes, small projects, stored runs."""
