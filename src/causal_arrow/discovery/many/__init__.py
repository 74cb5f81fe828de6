"""Many tables at once: which tables (`tables`), what is to do (`plan`), the work of one process (`work`), the processes
that share it (`workers`), where the answers go (`folder`), and `discover_many`, which brings them together (`run`)."""
