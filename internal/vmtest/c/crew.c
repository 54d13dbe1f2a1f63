// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crew.h"
#include "rig.h"

/* Errors that a worker may get once its device is removed. */
static bool gone(int error, const struct nfcomms_completion *c)
{
	return error == ENODEV || error == EHOSTDOWN ||
	       (error == 0 &&
		(c->status == NFC_ERESET || c->status == NFC_EFAULT));
}

struct job {
	uint8_t *p;
	int ready; /* where a worker says that it has begun */
};

/* Transfers and messages until the device goes. Exit status 0: told so. */
static int work(void *argument)
{
	const struct job *job = argument;
	uint8_t *p = job->p;
	int fd = client();
	uint32_t ch = program(fd, "loopback");
	struct nfcomms_op ops[4] = {
		transfer(NFCOMMS_OP_SEND_IND, ch, p, BULK),
		transfer(NFCOMMS_OP_RECEIVE_IND, ch, p, BULK),
		message(ch, "x", 1),
		operation(NFCOMMS_OP_RECEIVE, ch),
	};

	ops[3].length = 56;
	CHECK(write(job->ready, "", 1) == 1);
	for (unsigned int i = 0; !test_failures(); i++) {
		struct nfcomms_completion c = { .status = NFC_OK };
		int error = call(fd, &ops[i % 4], &c);

		if (gone(error, &c))
			return 0;
		CHECK_EQ(error, 0);
		CHECK_EQ(c.status, NFC_OK);
	}
	return 1;
}

struct crew hire(uint8_t *p)
{
	struct job job = { .p = p };
	struct crew w;
	int way[2];
	char byte;

	CHECK(pipe(way) == 0);
	job.ready = way[1];
	for (int i = 0; i < WORKERS; i++)
		w.pid[i] = child(work, &job);
	close(way[1]);
	for (int i = 0; i < WORKERS; i++)
		CHECK(read(way[0], &byte, 1) == 1);
	close(way[0]);
	return w;
}

void dismiss(const struct crew *w)
{
	for (int i = 0; i < WORKERS; i++) {
		int status = wait_child(w->pid[i]);

		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

void fire(const struct crew *w)
{
	for (int i = 0; i < WORKERS; i++)
		kill(w->pid[i], SIGKILL);
}

void await_ends(const struct crew *w)
{
	for (int i = 0; i < WORKERS; i++) {
		int status = wait_child(w->pid[i]);

		CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL :
					    WEXITSTATUS(status) == 0);
	}
}
