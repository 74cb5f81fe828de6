"""`python -m causal_arrow.benchmarks WEIGHTS ...`: compare weights on benchmark rows."""

import sys

from causal_arrow.benchmarks.weights import main

if __name__ == "__main__":
    sys.exit(main())
