"""Graphs in torch: the distribution that training fits, its exact likelihood, and measures that only the lab needs."""
