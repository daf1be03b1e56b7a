"""Reports of findings, one module a format; :mod:`irtool.render.findings.formats` lists them."""
