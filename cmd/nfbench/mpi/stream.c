// SPDX-License-Identifier: MIT
/*
 * The pair of "nfbench hmf one" with MPI: rank 0 fills packets of size bytes and
 * sends them, rank 1 receives them into a ring of its own and looks at the number
 * of each. Prints the nanoseconds of each package, then the processor time of both.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int size = atoi(argv[1]), ring = atoi(argv[2]), packages = atoi(argv[3]);
	int package = atoi(argv[4]), rank, wrong = 0;
	uint64_t number = 0;
	double cpu, all;
	char *from, *to;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	from = calloc(1, size);
	to = calloc(ring, size);
	memset(from, 7, size);
	memset(to, 7, (size_t)ring * size);
	for (int p = 0; p < packages; p++) {
		double start = MPI_Wtime();

		for (int i = 0; i < package; i++, number++) {
			char *at = to + number % ring * size;

			if (rank == 0) {
				memcpy(at, from, size);
				memcpy(at, &number, sizeof(number));
				MPI_Send(at, size, MPI_BYTE, 1, 0,
					 MPI_COMM_WORLD);
			} else {
				MPI_Recv(at, size, MPI_BYTE, 0, 0,
					 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				wrong += memcmp(at, &number, sizeof(number)) !=
					 0;
			}
		}
		if (rank == 0)
			printf("%.0f\n", (MPI_Wtime() - start) * 1e9);
	}
	cpu = cpu_ns();
	MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.0f\n", all);
	MPI_Finalize();
	return wrong != 0;
}
