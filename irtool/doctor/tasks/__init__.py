"""The tasks of the doctor, one a module; see :mod:`irtool.doctor.registry`."""
