"""The index of runs and cases: an SQLite file, made from run folders and made again whenever it is gone."""
