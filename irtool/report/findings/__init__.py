"""Reports of findings, one module a format; :mod:`irtool.report.findings.formats` lists them."""
