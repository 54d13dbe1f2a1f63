/*
 * Eager transfers to the host: pages that are posted for the next one, taken back, or given for what
 * is offered; posts, withdrawals and offers that cross.
 *
 * Bounds: K receives, K writes of a message or of a transfer of one of two sizes, rings of SLOTS
 * slots. The context of a receive may end at any time.
 * Safety: the engine touches no page that is not pinned; a receive has a transfer exactly if its
 * write succeeded; both sides agree about which offer the pages are for; no message of an honest
 * side is a fault for the other.
 * Progress: every receive ends once something is written for it, or its context ends.
 */
#include "host.pml"
#include "device.pml"

#ifndef K
#define K 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif

mtype = { DIRECT, BEGIN, EAGER, ACK, WITHDRAW, WITHDRAWN };

chan h2d = [SLOTS] of { mtype, byte, byte }; /* type, id, size; size 0 is a message */
chan d2h = [SLOTS] of { mtype, byte, byte };

byte hs, hm, hid, size; /* the host's half, and the size that is offered */
byte pinned; /* size of the pages that the device may write to; 0: none */
byte outcome;
bool got[K + 3]; /* by id: the host's call has it */

short dm;
byte ds, offered, posted; /* the device's half, and sizes */
byte dnext = 1;
byte returned;
bool busy;

#define ROOM(c) (len(c) < SLOTS)

active proctype receiver()
{
	byte ev, n;

end_receiver:
	do
	:: n < K ->
		outcome = E_none;
		if
		:: atomic { /* nothing is offered: pages for what comes next */
			may_host_d2h_put_EAGER(hs, hm) && hs == H_idle && ROOM(h2d) ->
			host_d2h_put_EAGER(hs, hm, ev);
			assert(ev != E_never && !pinned);
			if :: pinned = 1 :: pinned = 2 fi;
			h2d!EAGER, hid + 1, pinned
		}
		:: atomic { may_host_d2h_hold(hs, hm) -> host_d2h_hold(hs, hm, ev) };
			if
			:: atomic { host_d2h_release(hs, hm, ev); assert(ev != E_never) }
				goto next
			:: atomic {
				size == 0 && ROOM(h2d) -> host_d2h_put_accept(hs, hm, ev);
				got[hid] = true;
				h2d!ACK, hid, 0
			}
				goto next
			:: atomic {
				size > 0 && ROOM(h2d) -> host_d2h_put_EAGER(hs, hm, ev);
				assert(hs == H_given);
				pinned = size;
				h2d!EAGER, hid, size
			}
			fi
		fi;
		do
		:: atomic { outcome != E_none -> break }
		:: atomic { /* its context ends */
			outcome == E_none && may_host_d2h_put_WITHDRAW(hs, hm) && ROOM(h2d) ->
			host_d2h_put_WITHDRAW(hs, hm, ev);
			h2d!WITHDRAW, hid + 1, 0
#ifdef LAZYWITHDRAW
			; pinned = 0; outcome = E_withdrawn; hs = H_idle; hm = 0
#endif
		}
		od;
next:
progress_received:
		n++
	:: else -> break
	od
}

#define CURRENT (hs == H_posted -> hid + 1 : hid)

active proctype drain()
{
	mtype t;
	byte ev, id, z;

end_drain:
	do
	:: atomic {
		d2h?t, id, z ->
		ev = E_stale;
		if
		:: t == DIRECT || t == BEGIN ->
			assert(id == hid + 1);
			if
			:: t == BEGIN && hs == H_posted && z == pinned -> host_d2h_matching_offer(hs, hm, ev)
			:: else -> host_d2h_offer(hs, hm, ev)
			fi;
			if
			:: ev == E_offer -> hid++; size = z; pinned = 0; outcome = E_offer
			:: ev == E_progress -> hid++
			:: else
			fi
		:: t == ACK && id == CURRENT && (hs == H_given || hs == H_posted) ->
			if :: hs == H_posted -> hid++ :: else fi;
			host_d2h_consumed(hs, hm, ev);
			assert(z == pinned);
			got[hid] = true;
			pinned = 0;
			outcome = ev
		:: t == ACK && !(id == CURRENT && (hs == H_given || hs == H_posted)) -> assert(id < CURRENT)
		:: t == WITHDRAWN && id == CURRENT ->
			host_d2h_WITHDRAWN(hs, hm, ev);
			if :: ev == E_withdrawn -> pinned = 0; outcome = ev :: else fi
		:: t == WITHDRAWN && id != CURRENT -> assert(id < CURRENT)
		fi;
		assert(ev != E_fault)
	}
	od
}

active proctype manager()
{
	mtype t;
	byte put, ret, id, z;

end_manager:
	do
	:: atomic {
		ROOM(d2h) && len(h2d) > 0 -> h2d?t, id, z;
		if
		:: t == EAGER && id == dnext - 1 && ds == D_offered && z == offered ->
			dev_d2h_EAGER(ds, dm, put, ret)
		:: t == EAGER && id == dnext && ds == D_idle ->
			dev_d2h_posted_EAGER(ds, dm, put, ret);
			posted = z
		:: t == WITHDRAW && id == dnext && (dm & N_posted) ->
			dev_d2h_WITHDRAW_of_posted_pages(ds, dm, put, ret);
			if :: put == P_WITHDRAWN -> d2h!WITHDRAWN, id, 0 :: else fi
		:: t == ACK && id == dnext - 1 ->
			dev_d2h_ACK_CONSUMED(ds, dm, put, ret);
			returned = ret
		:: else -> assert(id <= dnext)
		fi
	}
	od
}

active proctype engine()
{
	byte put, ret;

end_engine:
	do
	:: ds == D_eager ->
		atomic {
			printf("MSC: pages begin to move\n");
			assert(pinned == offered);
			busy = true
		};
		atomic {
			ROOM(d2h) -> assert(pinned == offered);
			busy = false;
			dev_d2h_done(ds, dm, put, ret);
			assert(put == P_ACK_CONSUMED);
			returned = ret;
			d2h!ACK, dnext - 1, offered
		}
	od
}

active proctype process()
{
	byte put, ret, n;

	do
	:: n < K ->
		atomic {
			ROOM(d2h) -> returned = R_stays;
			if :: offered = 0 :: offered = 1 :: offered = 2 fi;
			if
			:: offered == 0 -> dev_d2h_channel_write(ds, dm, put, ret)
			:: offered > 0 && (dm & N_posted) && posted == offered -> dev_d2h_channel_write_ind_of_posted_pages(ds, dm, put, ret)
			:: else -> dev_d2h_channel_write_ind(ds, dm, put, ret)
			fi;
			dnext++;
			if
			:: put == P_DIRECT -> d2h!DIRECT, dnext - 1, 0
			:: put == P_IND_BEGIN -> d2h!BEGIN, dnext - 1, offered
			:: else -> assert(ds == D_eager)
			fi
		};
end_offered:
		returned == R_succeeds;
progress_written:
		n++
	:: else -> break
	od
}
