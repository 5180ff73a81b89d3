"""Grids as they are written, and the order in which their points are asked."""

from __future__ import annotations

from pytest_rageval.tools.sweep.grid import FULL, QUICK, Grid, parse_grid


def test_values_are_json_where_they_are_some_and_text_otherwise():
    grid = parse_grid(["a=1,.5,true,on", 'b="x,y",[1,2],{"c": 1}', "k=5,5,10"])
    assert grid.values == {"a": (1, 0.5, True, "on"), "b": ("x,y", [1, 2], {"c": 1}), "k": (5, 10)}


def test_the_quick_grid_has_six_points_and_the_full_one_189():
    assert len(Grid(QUICK).points()) == 6
    assert len(Grid(FULL).points()) == 189
    assert len(Grid(FULL).families()) == 9


def test_a_family_differs_in_its_cuts_alone_and_its_widest_point_cuts_least():
    (family, other) = parse_grid(["min_score=.4,.2", "k=5,10", "mode=a,b"]).families()
    assert len(family.points) == len(other.points) == 4
    assert family.widest.params == {"mode": "a", "min_score": 0.2, "k": 10}
    assert [point.params["k"] for point in family.by_score] == [5, 10]
    assert {point.params["min_score"] for point in family.by_score} == {0.4}


def test_a_threshold_that_is_no_number_is_no_cut():
    grid = parse_grid(["min_score=low,high", "k=5,10"])
    assert grid.cuts == ("k",)
    assert len(grid.families()) == 2
