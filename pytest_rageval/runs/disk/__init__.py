"""One run on disk: its folder and files, written, read, resumed and removed."""
