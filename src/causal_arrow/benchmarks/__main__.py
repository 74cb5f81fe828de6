"""`python -m causal_arrow.benchmarks WEIGHTS ...`: compare weights on rows; `... record SUITE ...`: records."""

import sys

from causal_arrow.benchmarks import record, weights

if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        sys.exit(record.main(sys.argv[2:]))
    sys.exit(weights.main())
