"""The tasks of the doctor, one a module; see :mod:`irtool.diagnosis.registry`."""
