"""Statistics over launches, verdicts, A/B comparisons and races."""
