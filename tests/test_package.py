import subprocess
import sys

import pytest

import zerogap


def test_every_public_name_loads():
    for name in zerogap.__all__:
        assert getattr(zerogap, name) is not None
        assert name in dir(zerogap)
    with pytest.raises(AttributeError, match="has no attribute 'Svc'"):
        _ = zerogap.Svc


def test_names_are_right_whatever_was_loaded_first():
    code = "import zerogap; zerogap.SVC; assert callable(zerogap.solve); assert zerogap.datasets.spiral(4)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_is_lazy():
    code = "import sys, zerogap; assert not {'numba', 'sklearn', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
