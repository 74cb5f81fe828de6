"""`python -m causal_arrow_lab`: the program `causal-arrow-lab`."""

from causal_arrow_lab.cli import main

if __name__ == "__main__":
    main()
