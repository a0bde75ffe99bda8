"""Segments that stay arrays are the same list as one of segments."""

import pickle

import numpy as np
import pytest

from zerogap.path.engine import Log, Segment
from zerogap.path.store import Segments


def alone(point):
    return Segment(np.array([point]), np.array([0.5]), np.array([-0.5]), 1.0, 2.0, 3.0)


@pytest.fixture
def log():
    sizes, rng = np.array([2, 1, 3, 2]), np.random.default_rng(0)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    lines = rng.permutation(8), rng.standard_normal(8), rng.standard_normal(8)
    return Log(edges, *lines, rng.standard_normal((4, 4)), rng.integers(0, 3, (4, 3)))


def assert_same(segments, expected):
    edges, points, u, v, numbers = segments.stack()
    sizes, again = segments.numbers()
    assert len(segments) == len(expected) == len(sizes)
    for k, (one, other) in enumerate(zip(segments, expected, strict=True)):
        part = slice(edges[k], edges[k + 1])
        for x, y, z in zip(one[:3], other[:3], (points[part], u[part], v[part]), strict=True):
            assert x.tolist() == y.tolist() == z.tolist()
        assert one[3:] == other[3:] == tuple(numbers[k].tolist()) == tuple(again[k].tolist())
    assert segments.first_points().tolist() == [s.points[0] if s.points.size else 0 for s in expected]


def test_a_log_beside_single_segments(log):
    segments, expected = Segments([alone(7)]), [alone(7), *(log.segment(k) for k in range(1, 4)), alone(5)]
    segments.extend_by(log, 1)
    segments.append(alone(5))
    assert_same(segments, expected)
    assert [s.points.tolist() for s in segments[1:3]] == [s.points.tolist() for s in expected[1:3]]
    part = segments.stack(2, 4)
    assert part.points.tolist() == np.concatenate([s.points for s in expected[2:4]]).tolist()
    assert_same(pickle.loads(pickle.dumps(segments)), expected)
    assert_same(Segments(), [])


@pytest.mark.parametrize("k", range(4))
def test_what_is_put_in_the_place_of_a_segment_is_read(log, k):
    segments, expected = Segments(), [log.segment(j) for j in range(4)]
    segments.extend_by(log, 0)
    parts = segments.replaced({k: [alone(6), alone(4)]})
    assert_same(segments, expected)
    assert_same(parts, [*expected[:k], alone(6), alone(4), *expected[k + 1 :]])
    segments[k] = expected[k] = alone(9)
    assert_same(segments, expected)
    del segments[k], expected[k]
    assert_same(segments, expected)


def test_segments_by_place_and_by_slice(log):
    segments, expected = Segments(), [*(log.segment(k) for k in range(4)), alone(5), *(log.segment(k) for k in (2, 3))]
    segments.extend_by(log, 0)
    segments.append(alone(5))
    segments.extend_by(log, 2)
    segments.extend_by(log, 4)  # nothing
    segments.insert(1, alone(8))
    expected.insert(1, alone(8))
    assert_same(segments, expected)
    for part in (slice(2, 7), slice(3, 3), slice(-2, None), slice(None, None, 3), slice(6, 1, -2)):
        assert [s.points.tolist() for s in segments[part]] == [s.points.tolist() for s in expected[part]]
    for k in range(-len(expected), len(expected)):
        assert segments[k].points.tolist() == expected[k].points.tolist()
    for k in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError, match="There are 8 segments"):
            segments[k]
    for begin in range(9):
        for stop in range(begin, 9):
            found = segments.stack(begin, stop)
            assert found.points.tolist() == [i for s in expected[begin:stop] for i in s.points.tolist()]
            assert np.diff(found.edges).tolist() == [s.points.size for s in expected[begin:stop]]
    del segments[2:5], expected[2:5]
    segments[-1] = expected[-1] = alone(3)
    assert_same(segments, expected)
    segments[1:3] = expected[1:3] = [alone(4)]
    assert_same(segments, expected)


def test_the_first_of_a_log_and_its_steps(log):
    for count in (1, 4):
        first = log.first(count)
        steps = first.steps()
        assert len(steps) == first.n_segments == count
        for k, (segment, lam, made) in enumerate(steps):
            assert segment.points.tolist() == log.segment(k).points.tolist()
            assert [(lam, *log.moves[k].tolist())] == [tuple(t) for t in made]
    assert log.first(1).u.base is None  # a copy: most of the memory was not used
