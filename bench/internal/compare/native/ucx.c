// SPDX-License-Identifier: MIT
/*
 * UCX as a peer: messages with a tag between two processes, through whatever shared
 * memory UCX chooses.
 */
#include "copies.h"

#include <stdlib.h>
#include <ucp/api/ucp.h>

enum { TAG = 1 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h other;

static void must(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		peer_fail(what, ucs_status_string(status));
}

/* Wait until what was asked for is done. */
static void finish(ucs_status_ptr_t request, const char *what)
{
	ucs_status_t status = UCS_OK;
	unsigned int tries = 0;

	if (UCS_PTR_IS_ERR(request))
		must(UCS_PTR_STATUS(request), what);
	if (!request)
		return;
	while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
		if (!ucp_worker_progress(worker))
			peer_pause(&tries);
	}
	ucp_request_free(request);
	must(status, what);
}

/* Tell the other process where this one is, and connect to it. */
static void connect_to(int conn)
{
	ucp_ep_params_t to = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_address_t *own, *theirs;
	size_t size, their_size;

	must(ucp_worker_get_address(worker, &own, &size), "address");
	peer_write(conn, &size, sizeof(size));
	peer_write(conn, own, size);
	ucp_worker_release_address(worker, own);
	peer_read(conn, &their_size, sizeof(their_size));
	theirs = malloc(their_size);
	if (!theirs)
		peer_fail("memory", "none");
	peer_read(conn, theirs, their_size);
	to.address = theirs;
	must(ucp_ep_create(worker, &to, &other), "endpoint");
	free(theirs);
}

int peer_open(const struct peer_job *job, int *argc, char ***argv)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
				.features = UCP_FEATURE_TAG };
	ucp_worker_params_t single = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE
	};
	ucp_config_t *config;
	int conn, side;

	(void)argc, (void)argv;
	side = peer_fork(&conn);
	setenv("UCX_TLS", "shm", 0);
	must(ucp_config_read(NULL, NULL, &config), "config");
	must(ucp_init(&params, config, &context), "init");
	ucp_config_release(config);
	must(ucp_worker_create(context, &single, &worker), "worker");
	connect_to(conn);
	copies_init(job);
	return side;
}

void peer_send(const void *from, size_t size)
{
	static const ucp_request_param_t plain;

	finish(ucp_tag_send_nbx(other, from, size, TAG, &plain), "send");
}

const void *peer_receive(size_t size)
{
	static const ucp_request_param_t plain;
	void *to = copies_next();

	finish(ucp_tag_recv_nbx(worker, to, size, TAG, -1, &plain), "receive");
	return to;
}

void peer_close(void)
{
	static const ucp_request_param_t plain;

	finish(ucp_ep_close_nbx(other, &plain), "close");
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
}
