"""What `explain` and `choose` answer: from what was described to figures, sentences, rows of tables and points to draw.

| file | from | to |
|---|---|---|
| parse | numbers that a person gave, by name | a mechanism or a promise |
| written | what another tool wrote down | a mechanism |
| describe, python_text | a mechanism | what a person would have given, or written in Python |
| explain, choose | a mechanism or a promise | every score, with its error |
| demands | a promise | the noise that each weaker analysis demands |
| sentences, rows | an answer | words and figures for people |
| curves | a mechanism | points to draw |
"""
