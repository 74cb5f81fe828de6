"""Tables that come with the package: `causal_arrow.load_example`."""
