// SPDX-License-Identifier: MIT
/*
 * Start the device's loopback program, send it a message and a transfer, and see
 * whether the answer is the message that was sent.
 *
 *	cc echo.c $(pkg-config --cflags --libs libnfcomms) -o echo
 *	./echo [sim: | shm:PATH | dev:0]
 */
#include <libnfcomms.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SIZE = 1000000,
};

/* Say what failed; 1 if result is an error. */
static int failed(const char *what, int result)
{
	if (result < 0)
		fprintf(stderr, "%s: %s\n", what, nfcomms_strerror(result));
	return result < 0;
}

static int echo_message(struct nfcomms_dev *dev, uint32_t channel)
{
	static const char hello[] = "hello from C";
	char answer[NFCOMMS_MESSAGE_MAX];
	int n;

	if (failed("send", nfcomms_send(dev, channel, hello, sizeof(hello))))
		return 1;
	n = nfcomms_receive(dev, channel, answer, sizeof(answer));
	if (failed("receive", n))
		return 1;
	if (n != sizeof(hello) || memcmp(answer, hello, sizeof(hello))) {
		fprintf(stderr, "another message came back\n");
		return 1;
	}
	printf("message of %d bytes: %s\n", n, answer);
	return 0;
}

static int echo_transfer(struct nfcomms_dev *dev, uint32_t channel)
{
	unsigned char *out = malloc(SIZE), *in = calloc(1, SIZE);
	struct nfcomms_failure why;
	int bad = 1, i;

	if (!out || !in)
		goto free_both;
	for (i = 0; i < SIZE; i++)
		out[i] = (unsigned char)(i * 31 + (i >> 8));
	if (failed("send transfer",
		   nfcomms_send_ind(dev, channel, out, SIZE, &why)) ||
	    failed("receive transfer",
		   nfcomms_receive_ind(dev, channel, in, SIZE, &why)))
		goto free_both;
	bad = !!memcmp(in, out, SIZE);
	printf("transfer of %d bytes: %s\n", SIZE, bad ? "differs" : "equal");
free_both:
	free(in);
	free(out);
	return bad;
}

int main(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "sim:";
	struct nfcomms_process process;
	struct nfcomms_dev *dev;
	uint32_t channel;
	int bad = 1;

	if (failed(address, nfcomms_open(address, &dev)))
		return 1;
	if (failed("start", nfcomms_start(dev, "loopback", 0, 1, 0, &process)) ||
	    failed("subscribe", nfcomms_subscribe(dev, process.first, &channel)))
		goto close;
	bad = echo_message(dev, channel) || echo_transfer(dev, channel);
close:
	nfcomms_close(dev);
	return bad;
}
