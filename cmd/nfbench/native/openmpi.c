// SPDX-License-Identifier: MIT
/* OpenMPI as a peer: mpirun starts both processes; blocking point-to-point calls. */
#include "peer.h"

#include <mpi.h>

static const struct peer_job *work;
static unsigned long loaned, received;
static int other;

int peer_open(const struct peer_job *job, int *argc, char ***argv)
{
	int rank;

	work = job;
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	other = !rank;
	peer_slot(job, 0);
	return rank;
}

void *peer_loan(size_t size)
{
	(void)size;
	return peer_slot(work, loaned);
}

void peer_commit(size_t size)
{
	peer_send(peer_slot(work, loaned++), size);
}

void peer_send(const void *from, size_t size)
{
	MPI_Send(from, (int)size, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}

const void *peer_receive(size_t size)
{
	void *to = peer_slot(work, received);

	MPI_Recv(to, (int)size, MPI_BYTE, other, 0, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	return to;
}

void peer_release(void)
{
	received++;
}

void peer_close(void)
{
	MPI_Finalize();
}
