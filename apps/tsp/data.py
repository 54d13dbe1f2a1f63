#!/usr/bin/env python3
"""Make cities.tsp: 100 seeded cities, and their optimum, proved.

    pip install highspy
    python3 data.py > cities.tsp

No instance of TSPLIB is here. The package tsplib95 has some of them, none of about a
hundred cities, and says nothing of the licence of these files. The program reads their files, kroA100.tsp as any
other (--cities); a line "COMMENT: optimum 21282" in it is compared with.

The optimum is that of an integer program: every city has two edges, and every
set of cities that a solution leaves on its own gets a constraint that it must be
left at least twice, until the solution is one tour. HiGHS (MIT licence) proves
each solution optimal; a relaxation whose optimum is a tour proves the tour.
"""
import math
import random

import highspy

CITIES, WIDTH, HEIGHT, SEED = 100, 4000, 2000, 1978


def distance(a, b):
    """EUC_2D of TSPLIB: rounded to the nearest integer."""
    return (math.isqrt(4 * ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)) + 1) // 2


def components(n, edges):
    """The sets of cities that edges connect."""
    near = {i: [] for i in range(n)}
    for i, j in edges:
        near[i].append(j)
        near[j].append(i)
    seen, found = set(), []
    for start in range(n):
        if start in seen:
            continue
        part, todo = set(), [start]
        while todo:
            i = todo.pop()
            if i not in part:
                part.add(i)
                todo += near[i]
        seen |= part
        found.append(part)
    return found


def optimum(cities):
    n = len(cities)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    h = highspy.Highs()
    h.silent()
    h.setOptionValue("mip_rel_gap", 0.0)
    for p in pairs:
        h.addVar(0, 1)
        column = h.getNumCol() - 1
        h.changeColCost(column, distance(cities[p[0]], cities[p[1]]))
        h.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    for i in range(n):
        at = [k for k, p in enumerate(pairs) if i in p]
        h.addRow(2, 2, len(at), at, [1.0] * len(at))
    while True:
        h.run()
        assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
        value = h.getSolution().col_value
        edges = [p for k, p in enumerate(pairs) if value[k] > 0.5]
        parts = components(n, edges)
        if len(parts) == 1:
            return sum(distance(cities[i], cities[j]) for i, j in edges)
        for part in parts:
            cut = [k for k, (i, j) in enumerate(pairs) if (i in part) != (j in part)]
            h.addRow(2, highspy.kHighsInf, len(cut), cut, [1.0] * len(cut))


def main():
    draw = random.Random(SEED)
    cities = [(draw.randrange(WIDTH), draw.randrange(HEIGHT)) for _ in range(CITIES)]
    print("NAME: cities100")
    print(f"COMMENT: random.Random({SEED}) of Python in data.py, which proves the optimum with HiGHS {highspy.Highs().version()}")
    print(f"COMMENT: optimum {optimum(cities)}")
    print(f"TYPE: TSP\nDIMENSION: {CITIES}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION")
    for i, (x, y) in enumerate(cities, 1):
        print(i, x, y)
    print("EOF")


if __name__ == "__main__":
    main()
