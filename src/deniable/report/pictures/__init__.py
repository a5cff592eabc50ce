"""Pictures of results: each with its data, its words and its drawing."""
