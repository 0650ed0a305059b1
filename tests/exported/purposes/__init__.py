"""Training steps whose collectives are known by construction: see ../record_purposes.py."""
