"""The embedded demo: a small real RAG system over shipped notes, behind the same contract as any other."""
