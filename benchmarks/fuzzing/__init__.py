"""The parts of the campaign ``benchmarks/fuzz.py``: drawing cases, the independent evaluation, the checks, the workers."""
