// SPDX-License-Identifier: MIT
/*
 * OpenMPI as a peer: mpirun starts both processes; blocking point-to-point calls. SEND is
 * MPI_Send, which returns when the bytes are in a queue, or MPI_Ssend, which returns when
 * the other process has begun to receive them.
 */
#include "copies.h"

#include <mpi.h>

static int other;

int peer_open(const struct peer_job *job, int *argc, char ***argv)
{
	int rank;

	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	other = !rank;
	copies_init(job);
	return rank;
}

void peer_send(const void *from, size_t size)
{
	SEND(from, (int)size, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}

const void *peer_receive(size_t size)
{
	void *to = copies_next();

	MPI_Recv(to, (int)size, MPI_BYTE, other, 0, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	return to;
}

void peer_close(void)
{
	MPI_Finalize();
}
