// SPDX-License-Identifier: MIT
/*
 * iceoryx2 as a peer: a service of publish and subscribe each way, whose publisher
 * waits while its subscriber has no room. Messages are written and read where they lie.
 */
#include "peer.h"

#include <iox2/iceoryx2.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static iox2_node_h node;
static iox2_publisher_h publisher;
static iox2_subscriber_h subscriber;
static iox2_sample_mut_t sent_memory;
static iox2_sample_mut_h sent;
static iox2_sample_t got_memory;
static iox2_sample_h got;

static void must(int rc, const char *what)
{
	char why[32];

	if (rc == IOX2_OK)
		return;
	snprintf(why, sizeof(why), "error %d", rc);
	peer_fail(what, why);
}

/* The service that carries what side n sends. */
static iox2_port_factory_pub_sub_h service(const struct peer_job *job, int n,
					   pid_t first)
{
	static const char type[] = "uint8_t";
	iox2_service_builder_pub_sub_h builder;
	iox2_port_factory_pub_sub_h made;
	iox2_service_name_h name;
	char text[64];

	snprintf(text, sizeof(text), "nfbench/%d/%d", (int)first, n);
	must(iox2_service_name_new(NULL, text, strlen(text), &name), "name");
	builder = iox2_service_builder_pub_sub(iox2_node_service_builder(
		&node, NULL, iox2_cast_service_name_ptr(name)));
	must(iox2_service_builder_pub_sub_set_payload_type_details(
		     &builder, iox2_type_variant_e_DYNAMIC, type, strlen(type),
		     1, 1),
	     "type");
	iox2_service_builder_pub_sub_set_subscriber_max_buffer_size(&builder,
								    job->slots);
	iox2_service_builder_pub_sub_set_enable_safe_overflow(&builder, false);
	must(iox2_service_builder_pub_sub_open_or_create(builder, NULL, &made),
	     "service");
	iox2_service_name_drop(name);
	return made;
}

/* Both processes are here. */
static void meet(int conn)
{
	char here = 1;

	peer_write(conn, &here, 1);
	peer_read(conn, &here, 1);
}

int peer_open(const struct peer_job *job, int *argc, char ***argv)
{
	iox2_port_factory_publisher_builder_h publishers;
	iox2_port_factory_pub_sub_h to, from;
	pid_t first = getpid();
	int conn, side;
	bool any;

	(void)argc, (void)argv;
	side = peer_fork(&conn);
	iox2_set_log_level_from_env_or(iox2_log_level_e_ERROR);
	must(iox2_node_builder_create(iox2_node_builder_new(NULL), NULL,
				      iox2_service_type_e_IPC, &node),
	     "node");
	to = service(job, side, first);
	from = service(job, !side, first);
	must(iox2_port_factory_subscriber_builder_create(
		     iox2_port_factory_pub_sub_subscriber_builder(&from, NULL),
		     NULL, &subscriber),
	     "subscriber");
	publishers = iox2_port_factory_pub_sub_publisher_builder(&to, NULL);
	iox2_port_factory_publisher_builder_set_initial_max_slice_len(
		&publishers, job->size);
	iox2_port_factory_publisher_builder_backpressure_strategy(
		&publishers, iox2_backpressure_strategy_e_RETRY_UNTIL_DELIVERED);
	must(iox2_port_factory_publisher_builder_create(publishers, NULL,
							&publisher),
	     "publisher");
	meet(conn);
	must(iox2_publisher_update_connections(&publisher), "connect");
	meet(conn);
	must(iox2_subscriber_has_samples(&subscriber, &any), "connect");
	meet(conn); /* what is sent before nobody gets */
	return side;
}

void *peer_loan(size_t size)
{
	void *at;

	must(iox2_publisher_loan_slice_uninit(&publisher, &sent_memory, &sent,
					      size),
	     "loan");
	iox2_sample_mut_payload_mut(&sent, &at, NULL);
	return at;
}

void peer_commit(size_t size)
{
	size_t receivers;

	(void)size;
	must(iox2_sample_mut_send(sent, &receivers), "send");
	if (receivers != 1)
		peer_fail("send", "the other process did not get it");
}

void peer_send(const void *from, size_t size)
{
	memcpy(peer_loan(size), from, size);
	peer_commit(size);
}

const void *peer_receive(size_t size)
{
	unsigned int tries = 0;
	const void *at;
	size_t length;

	for (;; peer_pause(&tries)) {
		must(iox2_subscriber_receive(&subscriber, &got_memory, &got),
		     "receive");
		if (got)
			break;
	}
	iox2_sample_payload(&got, &at, &length);
	if (length != size)
		peer_fail("receive", "a message of another length");
	return at;
}

void peer_release(void)
{
	iox2_sample_drop(got);
}

void peer_close(void)
{
	iox2_publisher_drop(publisher);
	iox2_subscriber_drop(subscriber);
	iox2_node_drop(node);
}
