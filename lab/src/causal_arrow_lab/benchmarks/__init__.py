"""The benchmark: suites of datasets, methods to run on them, and reports of what came out."""
