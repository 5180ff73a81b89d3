"""Cases and answers in the formats of other tools: BEIR, TREC, SQuAD, Ragas, DeepEval, promptfoo."""
