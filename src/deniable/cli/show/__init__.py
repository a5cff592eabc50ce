"""What a result says in a terminal, one file for each kind of result."""
