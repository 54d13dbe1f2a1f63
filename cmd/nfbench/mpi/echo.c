// SPDX-License-Identifier: MIT
/*
 * The echo of "nfbench peers" with MPI: rank 0 sends a message of size bytes and
 * takes back what rank 1 returns. Prints the nanoseconds of each batch of echoes,
 * then the processor time of both.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void echo(int rank, char *message, int size, int count)
{
	for (int i = 0; i < count; i++) {
		if (rank == 0)
			MPI_Send(message, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(message, size, MPI_BYTE, !rank, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(message, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int size = atoi(argv[1]), batches = atoi(argv[2]), batch = atoi(argv[3]);
	double *took = calloc(batches, sizeof(*took)), start, cpu, all;
	char *message = calloc(1, size);
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	echo(rank, message, size, 1000); /* connects */
	cpu = cpu_ns();
	for (int i = 0; i < batches; i++) {
		start = MPI_Wtime();
		echo(rank, message, size, batch);
		took[i] = (MPI_Wtime() - start) * 1e9;
	}
	cpu = cpu_ns() - cpu;
	for (int i = 0; i < batches && rank == 0; i++)
		printf("%.0f\n", took[i]);
	MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.0f\n", all);
	MPI_Finalize();
	return 0;
}
