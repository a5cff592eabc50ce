"""Evidence that holds after every trial at once: bets against a claim, and when they are certain."""
