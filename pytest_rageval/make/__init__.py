"""New files: a first project, drafts of cases from notes, cases from traces."""
