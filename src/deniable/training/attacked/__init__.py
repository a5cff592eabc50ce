"""Models that membership inference attacks: their training, and the settings of the papers."""
