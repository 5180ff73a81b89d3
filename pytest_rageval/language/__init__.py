"""How texts say things: words, figures, statements, polarity, and whether an answer says what a gold says."""
