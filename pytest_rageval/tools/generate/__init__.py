"""Drafts of cases from a folder of notes: patterns of questions and answers, and what a model proposes."""
