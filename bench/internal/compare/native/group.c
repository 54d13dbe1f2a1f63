// SPDX-License-Identifier: MIT
/*
 * The step of "nfbench group" with MPI: every rank has bytes for each of so many
 * neighbours.
 *
 *	PROGRAM alltoallv|neighbor_alltoallv SIZE NEIGHBOURS BATCHES BATCH MS
 *
 * Prints as peer.c does; a batch takes what its slowest rank took, and after MS
 * milliseconds there is no other.
 */
#include "machine.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct exchange {
	int n, to, *counts, *places, *same;
	char *out, *in;
	MPI_Comm graph; /* MPI_COMM_NULL: all to all */
};

static int neighbour(int rank, int i, int n)
{
	int d = i / 2 + 1;

	return (rank + (i % 2 ? n - d : d)) % n;
}

static void make(struct exchange *e, int rank, int size, int to,
		 int neighbours_alone)
{
	int *peers = calloc(to, sizeof(*peers));

	e->to = to;
	e->counts = calloc(e->n, sizeof(*e->counts));
	e->places = calloc(e->n, sizeof(*e->places));
	e->same = calloc(to, sizeof(*e->same));
	e->out = calloc(e->n, size);
	e->in = calloc(e->n, size);
	e->graph = MPI_COMM_NULL;
	for (int i = 0; i < e->n; i++)
		e->places[i] = i * size;
	for (int i = 0; i < to; i++) {
		peers[i] = neighbour(rank, i, e->n);
		e->counts[peers[i]] = size;
		e->same[i] = size;
	}
	if (neighbours_alone)
		MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, to, peers,
					       MPI_UNWEIGHTED, to, peers,
					       MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
					       &e->graph);
	free(peers);
}

static void step(const struct exchange *e)
{
	if (e->graph == MPI_COMM_NULL)
		MPI_Alltoallv(e->out, e->counts, e->places, MPI_BYTE, e->in,
			      e->counts, e->places, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Neighbor_alltoallv(e->out, e->same, e->places, MPI_BYTE,
				       e->in, e->same, e->places, MPI_BYTE,
				       e->graph);
}

int main(int argc, char **argv)
{
	int rank, batches = atoi(argv[4]), batch = atoi(argv[5]), more = 1;
	struct exchange e;
	double cpu = 0, all, until = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &e.n);
	make(&e, rank, atoi(argv[2]), atoi(argv[3]),
	     strcmp(argv[1], "alltoallv") != 0);
	for (int b = -1; b < batches && more; b++) {
		double took, most, used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

		MPI_Barrier(MPI_COMM_WORLD);
		took = MPI_Wtime();
		for (int i = 0; i < batch; i++)
			step(&e);
		took = (MPI_Wtime() - took) * 1e9;
		MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0,
			   MPI_COMM_WORLD);
		if (b < 0) {
			until = MPI_Wtime() + atoi(argv[6]) / 1e3;
			continue;
		}
		cpu += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
		if (rank == 0)
			printf("batch %.0f\n", most);
		more = MPI_Wtime() < until;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("cpu %.0f\nwrong 0\n", all);
	MPI_Finalize();
	return 0;
}
