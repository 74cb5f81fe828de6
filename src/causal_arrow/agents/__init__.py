"""For assistants: a server of the Model Context Protocol, and a skill that says how to use it."""
