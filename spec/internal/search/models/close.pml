/*
 * Half-close and close, by either side, while something is offered either way, and the subscription
 * after it.
 *
 * Bounds: a message each way in a subscription, which
 * closes its halves in any order; SUBSCRIPTIONS of them one after the other, rings of SLOTS slots.
 * Safety: the subscription is over exactly once, after the host closed both halves; nothing of it is
 * put after that; a message whose half is closed has one outcome at both ends.
 * Progress: every call of either side ends, by its peer or by a close; the target can be opened again.
 */
#include "host.pml"
#include "device.pml"

#ifndef SUBSCRIPTIONS
#define SUBSCRIPTIONS 2
#endif
#ifndef SLOTS
#define SLOTS 3
#endif
#define TOOK 1
#define BACK 2

mtype = { DIRECT, ACK, ERROR, WITHDRAW, WITHDRAWN, CLOSE };

chan h2d = [SLOTS] of { mtype, byte, byte, byte }; /* type, half or halves, id, generation */
chan d2h = [SLOTS] of { mtype, byte, byte, byte };

byte hs[2], hm[2], hid[2];
byte ds[2];
short dm[2];
byte dnext[2] = 1;
byte generation, dgeneration; /* of the host, of the device; 0: closed there */
byte shut; /* halves that the host closed */
byte gone; /* halves that the process closed */
bool over;
byte outcome, given, taken, wrote;

#define ROOM(c) (len(c) < SLOTS)

active proctype host()
{
	byte ev, g;
	bool sends;

	do
	:: g < SUBSCRIPTIONS ->
		atomic { /* OPEN, whose reply brings the ids */
			dgeneration == 0 -> g++;
			generation = g; dgeneration = g; shut = 0; gone = 0; over = false;
			hs[0] = H_idle; hm[0] = 0; hs[1] = H_idle; hm[1] = 0;
			dm[0] = dm[0] & N_closed; dm[1] = dm[1] & N_closed;
			hid[0] = dnext[0] - 1; hid[1] = dnext[1] - 1;
			given = 0
		};
		/* a message, or none, which is taken back before the half is closed */
		if
		:: atomic {
			ROOM(h2d) && !(gone & 1) ->
			host_h2d_put_message(hs[0], hm[0], ev);
			outcome = E_none;
			hid[0]++;
			h2d!DIRECT, 0, hid[0], g
		};
			do
			:: atomic {
				outcome != E_none ->
				assert((outcome == E_delivered) == (given == TOOK));
				break
			}
			:: atomic {
				outcome == E_none && ROOM(h2d) && may_host_h2d_put_WITHDRAW(hs[0], hm[0]) ->
				host_h2d_put_WITHDRAW(hs[0], hm[0], ev);
				h2d!WITHDRAW, 0, hid[0], g
			}
			od
		:: skip
		fi;
		do
		:: shut == 3 -> break
		:: atomic {
			(shut & 1) == 0 && ROOM(h2d) && may_host_h2d_put_CLOSE(hs[0], hm[0]) ->
			host_h2d_put_CLOSE(hs[0], hm[0], ev);
			shut = shut | 1;
			h2d!CLOSE, 1, 0, g
		}
		:: atomic {
			(shut & 2) == 0 && may_host_d2h_hold(hs[1], hm[1]) && ROOM(h2d) ->
			host_d2h_hold(hs[1], hm[1], ev);
			host_d2h_put_accept(hs[1], hm[1], ev);
			assert(ev != E_never);
			taken = hid[1];
			h2d!ACK, 1, hid[1], g
		}
		:: atomic { /* what lies there the close answers */
			(shut & 2) == 0 && ROOM(h2d) && may_host_d2h_put_CLOSE(hs[1], hm[1]) ->
			host_d2h_put_CLOSE(hs[1], hm[1], ev);
			shut = shut | 2;
			h2d!CLOSE, 2, 0, g
		}
		od;
		atomic { over -> generation = 0 };
progress_over:
		skip
	:: else -> break
	od
}

active proctype drain()
{
	mtype t;
	byte ev, d, id, g;

end_drain:
	do
	:: atomic {
		d2h?t, d, id, g ->
		assert(g == generation && !over); /* nothing comes after the end */
		ev = E_stale;
		if
		:: t == DIRECT -> host_d2h_offer(hs[1], hm[1], ev); hid[1]++; assert(id == hid[1])
		:: t == ACK && id == hid[0] && hs[0] == H_offered -> host_h2d_consumed(hs[0], hm[0], ev); outcome = ev
		:: t == ERROR && id == hid[0] && hs[0] == H_offered -> host_h2d_refused(hs[0], hm[0], ev); outcome = ev
		:: t == WITHDRAWN && id == hid[0] -> host_h2d_WITHDRAWN(hs[0], hm[0], ev); if :: ev == E_withdrawn -> outcome = ev :: else fi
		:: t == CLOSE && d == 3 && shut == 3 -> over = true
		:: t == CLOSE && !(d == 3 && shut == 3) -> gone = gone | d
		:: else -> assert(false)
		fi;
		assert(ev != E_fault)
	}
	od
}

inline release()
{
	if
	:: ret == R_fails -> wrote = BACK
	:: ret == R_succeeds -> wrote = TOOK
	:: else
	fi
}

active proctype manager()
{
	mtype t;
	byte put, ret, d, id, g;

end_manager:
	do
	:: atomic {
		len(d2h) < SLOTS - 1 && len(h2d) > 0 -> h2d?t, d, id, g;
		if
		:: g != dgeneration /* the channel is not open: dropped */
		:: g == dgeneration && t == DIRECT ->
			dev_h2d_DIRECT(ds[0], dm[0], put, ret);
			assert(put != P_dropped);
			dnext[0]++;
			if :: put == P_ERROR -> d2h!ERROR, 0, id, g :: else fi
		:: g == dgeneration && t == WITHDRAW && id == dnext[0] - 1 ->
			dev_h2d_WITHDRAW(ds[0], dm[0], put, ret);
			if :: put == P_WITHDRAWN -> given = BACK; d2h!WITHDRAWN, 0, id, g :: else fi
		:: g == dgeneration && t == ACK && id == dnext[1] - 1 ->
			dev_d2h_ACK_CONSUMED(ds[1], dm[1], put, ret); release()
		:: g == dgeneration && t == CLOSE ->
			if :: d & 1 -> dev_h2d_CLOSE(ds[0], dm[0], put, ret) :: else fi;
			if :: d & 2 -> dev_d2h_CLOSE(ds[1], dm[1], put, ret); release() :: else fi;
			if
			:: (dm[0] & N_shut) && (dm[1] & N_shut) -> d2h!CLOSE, 3, 0, g; dgeneration = 0
			:: else
			fi
		:: else
		fi
	}
	od
}

active proctype process()
{
	byte put, ret, n;

end_process:
	do
	:: atomic { /* channel_read finds a message, or waits, or hears of the close */
		dgeneration && ROOM(d2h) && may_dev_h2d_take(ds[0], dm[0]) ->
		dev_h2d_take(ds[0], dm[0], put, ret);
		given = TOOK;
		d2h!ACK, 0, dnext[0] - 1, dgeneration
	}
	:: atomic { (dm[0] & N_notice) -> dev_h2d_read(ds[0], dm[0], put, ret); assert(ret == R_fails) }
	:: atomic { /* channel_write */
		n < SUBSCRIPTIONS && dgeneration && ROOM(d2h) && ds[1] == D_idle && (dm[1] & (N_shut | N_closed)) == 0 ->
		dev_d2h_channel_write(ds[1], dm[1], put, ret);
		wrote = 0;
		n++;
		dnext[1]++;
		d2h!DIRECT, 1, dnext[1] - 1, dgeneration
	};
		wrote;
		assert((wrote == TOOK) == (taken == dnext[1] - 1));
progress_wrote:
		skip
	:: atomic { /* channel_close of h2d, for good */
		dgeneration && len(d2h) < SLOTS - 1 && (dm[0] & N_closed) == 0 ->
		dev_h2d_channel_close(ds[0], dm[0], put, ret);
		if :: put == P_ERROR -> given = BACK; d2h!ERROR, 0, dnext[0] - 1, dgeneration :: else fi;
		d2h!CLOSE, 1, 0, dgeneration
	}
	od
}
