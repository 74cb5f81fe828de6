"""`python -m causal_arrow.benchmarks WEIGHTS ...`: compare weights on rows; `... record SUITE ...`: records;
`... mistakes`: what is wrong in the graphs, by kind."""

import sys

from causal_arrow.benchmarks import mistakes, record, weights

COMMANDS = {"record": record.main, "mistakes": mistakes.main}

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in COMMANDS:
        sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
    sys.exit(weights.main())
