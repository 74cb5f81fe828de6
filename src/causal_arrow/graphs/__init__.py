"""Graphs, knowledge and distributions over graphs.

Public: `dag`, `metrics`, `files` (read_graph, NamedGraph), `knowledge`, `beliefs` (Belief), `graph_distribution`
(GraphDistribution) and `decoding` (decode, vanished_adjacencies).
"""
