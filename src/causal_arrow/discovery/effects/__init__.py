"""Questions about effects and experiments. They are asked with the methods of `Discovery`, whose results live here."""
