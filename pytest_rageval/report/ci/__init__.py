"""A run as CI services show it: annotations, job summary, comment on a pull request."""
