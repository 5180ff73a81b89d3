"""Labels written back into case files: what is not labelled stays as it is, byte for byte."""
