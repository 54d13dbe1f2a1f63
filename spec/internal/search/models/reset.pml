/*
 * Start-up, a device that dies, and resets into a new epoch, under an eager transfer to the device.
 *
 * Bounds: CALLS transfers, DEATHS deaths, RESETS resets that the host likes to make; a slot of the
 * device may arrive late, even in the next epoch, and its engine goes on when the device has died.
 * Safety: the host reads a whole device_hello; the engine touches no page that was given back, nor
 * one of the next transfer; a transfer that succeeds was taken in its epoch.
 * Progress: every call ends: with the device's answer, its death or a reset; the next epoch starts.
 */
#include "host.pml"
#include "device.pml"

#ifndef CALLS
#define CALLS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef RESETS
#define RESETS 1
#endif

mtype = { EAGER, ACK };

chan h2d = [1] of { mtype, byte, byte }; /* epoch, id */
chan d2h = [1] of { mtype, byte, byte };

byte epoch = 1; /* of the host, and of the device since its reset */
bool hello, ready, host_hello; /* what the area has */
bool alive = true;
bool master = true; /* the device may reach the host's memory */
byte stage, deaths, resets;
byte hs, hm, hid, ds, dnext = 1;
short dm;
byte pinned; /* number of the call whose pages are pinned; 0: none */
byte posted, piece; /* of the engine: the call whose pages it was given, and of the piece that moves */
byte took; /* the call that the process took */
byte late, late_id; /* epoch of a slot that the device stored and that has not arrived; 0: none */

active proctype host()
{
	mtype t;
	byte ev, e, id, call;
	bool over;

	do
	:: call < CALLS ->
		call++;
		do
		:: atomic { ready -> assert(hello); printf("MSC: reads device_hello, writes host_hello\n"); host_hello = true; break }
#ifndef NO_BEAT
		:: atomic { !alive -> break }
#endif
		od;
		over = false;
		atomic {
			ev = E_none;
			if
			:: alive && host_hello && len(h2d) == 0 ->
				host_h2d_put_EAGER(hs, hm, ev);
				assert(ev != E_never);
				hid++;
				pinned = call;
				h2d!EAGER, epoch, hid
			:: else -> over = true
			fi;
			ev = E_stale
		};
		do
		:: ev == E_delivered -> break
		:: over -> break
		:: atomic {
			!over && ev != E_delivered && len(d2h) > 0 -> d2h?t, e, id;
			if
#ifdef NO_EPOCH
			:: id == hid && hs == H_given ->
#else
			:: e == epoch && id == hid && hs == H_given ->
#endif
				host_h2d_consumed(hs, hm, ev);
				assert(took == call)
			:: else
			fi;
			e = 0; id = 0
		}
#ifndef NO_BEAT
		:: atomic { !alive && !over && ev != E_delivered -> printf("MSC: misses the heartbeat\n"); over = true }
#endif
		:: atomic { resets < RESETS && !over && ev != E_delivered -> resets++; printf("MSC: resets\n"); over = true }
		od;
		if
		:: over ->
#ifndef NO_FENCE
			atomic { printf("MSC: fences\n"); master = false };
#ifndef NO_DRAIN
			!piece;
#endif
#endif
			pinned = 0;
			atomic { /* a new epoch, with an area of zeros */
				printf("MSC: begins a new epoch\n");
				epoch++;
				hello = false; ready = false; host_hello = false;
				do
				:: h2d?t, e, id
				:: d2h?t, e, id
				:: len(h2d) == 0 && len(d2h) == 0 -> break
				od;
				t = 0; e = 0; id = 0;
				hs = H_idle; hm = 0; hid = 0;
				ds = D_idle; dm = 0; dnext = 1; stage = 0; posted = 0;
				alive = true; master = true
			}
		:: else -> pinned = 0
		fi;
		ev = E_none;
progress_over:
		skip
	:: else -> break
	od;
end_host:
	d2h?t, e, id;
	goto end_host
}

active proctype device()
{
	mtype t;
	byte put, ret, e, id;

end_device:
	do
#ifdef EARLY_READY
	:: atomic { alive && stage == 0 -> printf("MSC: state READY\n"); ready = true; stage = 1 }
	:: atomic { alive && stage == 1 -> hello = true; stage = 2 }
#else
	:: atomic { alive && stage == 0 -> hello = true; stage = 1 }
	:: atomic { alive && stage == 1 -> printf("MSC: state READY\n"); ready = true; stage = 2 }
#endif
	:: atomic { alive && stage == 2 && host_hello -> stage = 3 }
	:: atomic {
		alive && stage == 3 && len(h2d) > 0 -> h2d?t, e, id;
		if
		:: e == epoch && id == dnext -> dnext++; dev_h2d_EAGER(ds, dm, put, ret)
		:: else
		fi;
		e = 0; id = 0; put = 0; ret = 0
	}
	:: atomic {
		alive && ds == D_offered && may_dev_h2d_take(ds, dm) ->
		dev_h2d_take(ds, dm, put, ret);
		posted = pinned; put = 0; ret = 0
	}
	:: atomic { /* all moved */
		alive && ds == D_eager && !posted && !piece && !late ->
		dev_h2d_done(ds, dm, put, ret);
		assert(put == P_ACK_CONSUMED && ret == R_succeeds);
		late = epoch; late_id = dnext - 1; put = 0; ret = 0
	}
	:: atomic { alive && stage == 3 && deaths < DEATHS -> deaths++; alive = false; printf("MSC: dies\n") }
	od
}

/* The engine goes on by itself. */
active proctype engine()
{
end_engine:
	do
	:: atomic { posted && !piece && master -> piece = posted; posted = 0; printf("MSC: begins to read\n") }
	:: atomic { piece -> assert(pinned == piece); took = piece; piece = 0; printf("MSC: has read\n") }
	od
}

/* A slot of the device arrives. */
active proctype carrier()
{
end_carrier:
	do
	:: atomic { late && len(d2h) == 0 -> d2h!ACK, late, late_id; late = 0; late_id = 0 }
	od
}
