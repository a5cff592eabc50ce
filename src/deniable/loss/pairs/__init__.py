"""One run of one mechanism: its dominating pair, one file a family."""
