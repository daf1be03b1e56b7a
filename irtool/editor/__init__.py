"""The language server: what editors ask of a dump, answered by the analyses that commands ask."""
