"""What `explain` and `choose` answer: from what was described to figures, sentences, rows of tables and points to draw.

parse (numbers that a person gave -> a mechanism or a promise), batches (how they are drawn), written (what another tool
wrote down) | describe (the way back) | explain, choose (every score, with its error; what weaker analyses demand),
further_figures (what is said beside scores), strength (how strong that is called) | sentences, rows, glossary (words
and figures for people) | curves (points to draw) | budget (what is left of a promise).
"""
