"""`python -m causal_arrow`: the same as the program `causal-arrow`."""

from causal_arrow.cli import main

if __name__ == "__main__":
    main()
