"""Many tables, on this machine or a cluster: `run` has `discover_many` and describes how the modules cooperate."""
