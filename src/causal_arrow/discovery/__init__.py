"""From a table to an answer. `causal_arrow` has the public names; pictures are in `causal_arrow.discovery.pictures`."""
