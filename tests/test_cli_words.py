"""What a new user meets: files that a broken pipe must not cost, and messages that must name what helps."""

import json
import os
import sys

import numpy as np
import pytest

import zerogap
from zerogap.cli import main

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2)).round(3)
KIND = np.where(X[:, 0] > 0, "yes", "no")
FIT = ("--no-peer", "--C", "1")


def csv_text(columns=X.T, kind=KIND, names="a,b,kind"):
    rows = zip(*columns, kind, strict=True)
    return names + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in a folder with data.csv; return its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(csv_text())

    def call(*arguments):
        code = main(list(map(str, arguments)))
        return code, *capsys.readouterr()

    return call


# A pipe that nobody reads.


@pytest.fixture
def into_nothing(tmp_path, monkeypatch):
    """Run a command whose standard output is a pipe that nobody reads; return its exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(csv_text())

    def call(*arguments):
        read, write = os.pipe()
        os.close(read)
        with open(write, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            return main(list(arguments))

    return call


@pytest.mark.parametrize("command", ["fit", "path"])
def test_a_broken_pipe_does_not_cost_the_model(tmp_path, into_nothing, command):
    more = "--no-grid" if command == "path" else "--no-peer"
    assert into_nothing(command, "data.csv", "--save", "q", more) == 141
    assert (tmp_path / "q.npz").exists()


def test_a_broken_pipe_does_not_cost_the_json(tmp_path, into_nothing):
    assert into_nothing("fit", "data.csv", *FIT, "--json", "out.json") == 141
    assert json.loads((tmp_path / "out.json").read_text())["points"] > 0


def test_without_a_file_to_write_a_broken_pipe_ends_the_command(monkeypatch, into_nothing):
    monkeypatch.setattr(zerogap.SVC, "fit", lambda *_: pytest.fail("fitted for nobody"))
    assert into_nothing("fit", "data.csv", *FIT) == 141


def test_path_tells_where_it_was_saved(run):
    code, out, _ = run("path", "data.csv", "--no-grid", "--save", "q.npz", "--C-max", "1")
    assert code == 0
    assert "saved: q.npz;" in out
    assert zerogap.Path.load("q.npz").C[-1] == pytest.approx(1.0)
