"""L4: what a system inferred, checked against an ontology of TOML or JSON, or of RDF with SHACL shapes."""
