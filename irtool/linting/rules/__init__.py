"""The rules, one module each: ``<family>/<code>_<name>.py``. README.md says how to add one."""
