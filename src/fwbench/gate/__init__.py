"""Whether a change in time is real: statistics over launches, verdicts, A/B comparisons."""
