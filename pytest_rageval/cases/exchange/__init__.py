"""Cases and answers in the formats of other tools, read and written: BEIR, TREC, SQuAD, Ragas, DeepEval, promptfoo."""
