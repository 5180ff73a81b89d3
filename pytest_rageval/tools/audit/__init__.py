"""What may be wrong with labels: golds that are gone, cases that nobody can win, questions that tell the answer."""
