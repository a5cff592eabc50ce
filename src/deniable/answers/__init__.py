"""What `explain` and `choose` answer: from what was described to figures, sentences, rows of tables and points to draw.

| file | from | to |
|---|---|---|
| parse | numbers that a person gave, by name | a mechanism or a promise |
| describe | a mechanism | what a person would have given |
| explain, choose | a mechanism or a promise | every score, with its error |
| demands | a promise | the noise that each weaker analysis demands |
| sentences, rows | an answer | words and figures for people |
| curves | a mechanism | points to draw |
"""
