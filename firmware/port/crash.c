// SPDX-License-Identifier: MIT
/* Crashes of processes: named, contained and kept, in a handler of signals. Record 0053. */
#define _GNU_SOURCE
#include "crash.h"

#include <string.h>
#include <unistd.h>

#include "epoch.h"
#include "image.h"
#include "stack.h"
#include "switch.h"

/* ---- text, where nothing may be called that is not safe in a signal ---- */

struct text {
	char *to;
	size_t room; /* the zero at the end not counted */
};

static void say(struct text *t, const char *text)
{
	for (; *text && t->room; t->room--)
		*t->to++ = *text++;
	*t->to = 0;
}

static void say_number(struct text *t, uint64_t n, unsigned int base)
{
	char digits[24], *at = digits + sizeof(digits) - 1;

	*at = 0;
	do {
		*--at = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	say(t, at);
}

static void say_memory(struct text *t, const struct nfc_stack *stack,
		       const void *address)
{
	if (port_stack_guards(stack, address)) {
		say(t, "overran its stack of ");
		say_number(t, stack->size, 10);
		say(t, " bytes");
		return;
	}
	say(t, "touched memory that cannot be reached, at 0x");
	say_number(t, (uintptr_t)address, 16);
}

static void say_what(struct text *t, const struct nfc_stack *stack,
		     const siginfo_t *info)
{
	switch (info->si_signo) {
	case SIGFPE:
		say(t, info->si_code == FPE_INTDIV ? "divided by zero, or to "
						     "what has no room" :
						     "ended in an exception of "
						     "floating point");
		break;
	case SIGILL:
		say(t, "ran what is no instruction");
		break;
	case SIGTRAP:
		say(t, "ran into a breakpoint");
		break;
	case SIGABRT:
		say(t, "aborted");
		break;
	default:
		say_memory(t, stack, info->si_addr);
	}
}

static void say_line(struct text *t, const struct nfc_crash *c)
{
	say(t, "device program \"");
	say(t, c->program);
	say(t, "\" (process ");
	say_number(t, c->process, 10);
	say(t, ", island ");
	say_number(t, c->island, 10);
	say(t, ") ");
	say(t, c->what);
	if (!c->image)
		return;
	say(t, ", in its image at 0x");
	say_number(t, c->offset, 16);
}

/* No log is left to report that: the process ends. */
static void write_last_line(char line[PORT_CRASH_LINE])
{
	ssize_t n = write(STDERR_FILENO, "nfcomms: ", 9);

	n = write(STDERR_FILENO, line, strlen(line));
	n = write(STDERR_FILENO, "\n", 1);
	(void)n;
}

/* ---- the handler ---- */

/* Describe what a process did; false if the thread runs none. */
static bool describe(struct port_runner *r, struct port_crash *to,
		     const struct nfc_stack *stack, const siginfo_t *info,
		     const void *context)
{
	struct nfc_crash *c = &to->crash;
	struct text what = { c->what, sizeof(c->what) - 1 };
	struct text line = { to->line, sizeof(to->line) - 1 };
	uintptr_t base = (uintptr_t)stack->base;
	uintptr_t sp = port_switch_sp(context);
	struct nfc_computing who;

	if (!nfc_island_computes(r->epoch->dev, r->island, &who))
		return false;
	c->process = who.process;
	c->island = who.island;
	memcpy(c->program, who.program, sizeof(c->program));
	say_what(&what, stack, info);
	if (!port_image_place(port_switch_pc(context), &c->image, &c->offset))
		port_image_caller(sp < base ? base : sp, base + stack->size,
				  &c->image, &c->offset);
	say_line(&line, c);
	return true;
}

/* The place of the next crash; readers ignore it until it has a number. */
static struct port_crash *claim(struct port_crashes *all, uint64_t *number)
{
	struct port_crash *c;

	*number = atomic_fetch_add(&all->count, 1) + 1;
	c = &all->at[*number % PORT_CRASHES];
	atomic_store(&c->number, 0);
	memset(&c->crash, 0, sizeof(c->crash));
	return c;
}

static bool on_crash(struct nfc_fault_owner *owner, const siginfo_t *info,
		     void *context)
{
	struct port_runner *r = (struct port_runner *)owner;
	struct nfc_device *dev = r->epoch->dev;
	const struct nfc_stack *stack = nfc_island_stack(dev, r->island);
	uintptr_t sp = port_switch_sp(context);
	struct port_crash *c;
	uint64_t number;

	if (!stack)
		return false; /* not in a process */
	c = claim(&r->epoch->crashes, &number);
	if (!describe(r, c, stack, info, context))
		return false;
	if (!port_stack_holds(stack, sp) ||
	    !nfc_island_crash(dev, r->island, c->line, &c->process)) {
		write_last_line(c->line);
		return false;
	}
	atomic_store(&c->number, number);
	port_switch_again(context, stack, c->process.enter, c->process.arg);
	return true;
}

void port_crash_begin(struct port_runner *r, struct epoch *epoch,
		      uint32_t island)
{
	r->owner.crashed = on_crash;
	r->epoch = epoch;
	r->island = island;
	nfc_fault_own(&r->owner);
}

/* ---- what became of a subscription ---- */

static bool ended(const struct nfc_crashed *p, uint32_t host, uint32_t target,
		  uint64_t generation)
{
	return p->host == host && target - p->first < p->ports &&
	       generation < p->generation;
}

bool nfc_hosted_crash(struct nfc_hosted *h, uint32_t host, uint32_t target,
		      uint64_t generation, struct nfc_crash *out)
{
	struct port_crashes *all = h->epoch ? &h->epoch->crashes : NULL;
	uint64_t last = all ? atomic_load(&all->count) : 0;
	uint64_t n = last > PORT_CRASHES ? last - PORT_CRASHES : 0;

	while (n++ < last) {
		struct port_crash *c = &all->at[n % PORT_CRASHES];

		if (atomic_load(&c->number) != n ||
		    !ended(&c->process, host, target, generation))
			continue;
		*out = c->crash;
		if (atomic_load(&c->number) == n)
			return true;
	}
	return false;
}
