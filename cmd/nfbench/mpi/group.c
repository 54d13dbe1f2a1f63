// SPDX-License-Identifier: MIT
/*
 * The step of "nfbench group" with MPI: every rank has size bytes for each of so
 * many neighbours. Prints the nanoseconds of a step with alltoallv and with
 * neighbor_alltoallv, of the slowest rank, and the processor time of all ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int neighbour(int rank, int i, int n)
{
	int d = i / 2 + 1;

	return (rank + (i % 2 ? n - d : d)) % n;
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int size = atoi(argv[1]), to = atoi(argv[2]), steps = atoi(argv[3]);
	int rank, n, *counts, *places, *peers;
	char *out, *in;
	MPI_Comm graph;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	counts = calloc(n, sizeof(*counts));
	places = calloc(n, sizeof(*places));
	peers = calloc(to, sizeof(*peers));
	out = calloc(n, size);
	in = calloc(n, size);
	for (int i = 0; i < n; i++)
		places[i] = i * size;
	for (int i = 0; i < to; i++) {
		peers[i] = neighbour(rank, i, n);
		counts[peers[i]] = size;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, to, peers, MPI_UNWEIGHTED, to, peers,
				       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
	for (int kind = 0; kind < 2; kind++) {
		int *same = calloc(to, sizeof(*same));
		double took, cpu, most, all;

		for (int i = 0; i < to; i++)
			same[i] = size;
		for (int step = -steps / 10; step < steps; step++) {
			if (step == 0) {
				MPI_Barrier(MPI_COMM_WORLD);
				cpu = cpu_ns();
				took = MPI_Wtime();
			}
			if (kind == 0)
				MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places,
					      MPI_BYTE, MPI_COMM_WORLD);
			else
				MPI_Neighbor_alltoallv(out, same, places, MPI_BYTE, in, same, places,
						       MPI_BYTE, graph);
		}
		took = (MPI_Wtime() - took) * 1e9 / steps;
		cpu = (cpu_ns() - cpu) / steps;
		MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
		MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("%.0f %.0f\n", most, all);
		free(same);
	}
	MPI_Finalize();
	return 0;
}
