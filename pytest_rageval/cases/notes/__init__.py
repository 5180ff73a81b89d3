"""The notes that a system answers from, as a folder of files: their sections, and the golds that stand in them."""
