"""Files as versions of windage wrote them, one folder a version; later ones read or refuse them.

python -m tests.archive tests/archive/VERSION
"""
