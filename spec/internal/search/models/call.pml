/*
 * Questions of the host to a process, which answers them, reads them as messages, or is too late.
 *
 * Bounds: K questions, rings of SLOTS slots. The context of a call may end at any time. The process
 * takes a question by either kind of read, and answers it or reads on.
 * Safety: an outcome is the same at both ends: answered, withdrawn and never seen, taken and not
 * answered, or taken as a message. No message of an honest side is a fault for the other.
 * Progress: every call ends once the process has it, or its context ends.
 */
#include "host.pml"
#include "device.pml"

#ifndef K
#define K 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define SEEN 1 /* what became of a question at the process */
#define ANSWERED 2
#define MESSAGE 3 /* it was acknowledged by a plain read */
#define LATE 4 /* its reply found that nobody waits */

mtype = { CALL, ANSWER, ACK, UNANSWERED, WITHDRAW, WITHDRAWN };

chan h2d = [SLOTS] of { mtype, byte }; /* type, id */
chan d2h = [SLOTS] of { mtype, byte };

byte hs, hm, hid; /* the host's half */
byte ds, dnext = 1; /* the device's */
short dm;
byte at[K + 2]; /* by id */
byte outcome; /* of the call */
byte recall; /* id of the question that the host wants back; 0: none */

#define ROOM(c) (len(c) < SLOTS)

active proctype caller()
{
	byte ev, n;

	do
	:: n < K ->
		atomic {
			ROOM(h2d) -> host_h2d_put_CALL(hs, hm, ev);
			assert(ev != E_never);
			hid++;
			outcome = E_none;
			h2d!CALL, hid
		}
		do
		:: atomic {
			outcome != E_none -> assert(hs == H_idle);
			assert((outcome == E_answered) == (at[hid] == ANSWERED));
			assert((outcome == E_withdrawn) == (at[hid] == 0));
			assert((outcome == E_delivered) == (at[hid] == MESSAGE));
			assert((outcome == E_unanswered) == (at[hid] == SEEN || at[hid] == LATE));
			break
		}
		:: atomic { /* its context ends */
			outcome == E_none && ROOM(h2d) && may_host_h2d_put_WITHDRAW(hs, hm) ->
			host_h2d_put_WITHDRAW(hs, hm, ev);
			h2d!WITHDRAW, hid
#ifdef ONEWAY
;
			outcome = E_withdrawn; /* it does not wait for the answer */
			hs = H_idle;
			hm = 0
#endif
		}
		od;
progress_called:
		n++
	:: else -> break
	od
}

/* The host's part of a mailbox. */
active proctype drain()
{
	mtype t;
	byte ev, id;

end_drain:
	do
	:: atomic {
		d2h?t, id ->
		if
		:: id == hid && hs == H_called && t == ANSWER -> host_h2d_ANSWER(hs, hm, ev); outcome = ev
		:: id == hid && hs == H_called && t == ACK -> host_h2d_consumed(hs, hm, ev); outcome = ev
		:: id == hid && hs == H_called && t == UNANSWERED -> host_h2d_unanswered(hs, hm, ev); outcome = ev
		:: id == hid && t == WITHDRAWN ->
			host_h2d_WITHDRAWN(hs, hm, ev);
			if :: ev == E_withdrawn -> outcome = ev :: else fi
		:: else -> assert(id <= hid); ev = E_stale
		fi;
		assert(ev != E_fault)
	}
	od
}

/* The read manager: it takes a message only where there is room for the answer. */
active proctype manager()
{
	mtype t;
	byte put, ret, id;

end_manager:
	do
	:: atomic {
		ROOM(d2h) && len(h2d) > 0 -> h2d?t, id;
		if
		:: t == CALL ->
			assert(id == dnext);
			dev_h2d_CALL(ds, dm, put, ret);
			assert(put == P_nothing);
			dnext++
		:: t == WITHDRAW && id == dnext - 1 && (ds == D_question || ds == D_taken) -> recall = id
		:: else
		fi
	}
	:: atomic { /* after the processes ran */
		recall && ROOM(d2h) ->
		if
		:: recall == dnext - 1 && (ds == D_question || ds == D_taken) ->
			dev_h2d_WITHDRAW(ds, dm, put, ret);
			if
			:: put == P_WITHDRAWN -> d2h!WITHDRAWN, recall
			:: put == P_ACK_CONSUMED -> d2h!UNANSWERED, recall
			:: else
			fi
		:: else
		fi;
		recall = 0
	}
	od
}

/* The process, which is asked nothing while it has a question. */
active proctype process()
{
	byte put, ret, has;

end_process:
	do
	:: atomic { /* channel_question */
		!has && may_dev_h2d_take_a_question(ds, dm) ->
		dev_h2d_take_a_question(ds, dm, put, ret);
		has = dnext - 1;
		assert(at[has] == 0);
		at[has] = SEEN
	}
	:: atomic { /* channel_read */
		!has && ROOM(d2h) && ds == D_question ->
		dev_h2d_take(ds, dm, put, ret);
		assert(at[dnext - 1] == 0);
		at[dnext - 1] = MESSAGE;
		if :: put == P_ACK_CONSUMED -> d2h!ACK, dnext - 1 :: else fi
	}
	:: atomic { /* channel_reply */
		has && ROOM(d2h) ->
		if
		:: ds == D_taken ->
			assert(has == dnext - 1);
			dev_h2d_channel_reply(ds, dm, put, ret);
			at[has] = ANSWERED;
			if :: put == P_ANSWER -> d2h!ANSWER, has :: else fi
		:: else -> at[has] = LATE
		fi;
		has = 0
	}
	:: atomic { /* a read before the reply */
		has && ROOM(d2h) ->
		if
		:: ds == D_taken ->
			dev_h2d_read(ds, dm, put, ret);
			at[has] = MESSAGE;
			if :: put == P_ACK_CONSUMED -> d2h!ACK, has :: else fi
		:: else -> at[has] = LATE
		fi;
		has = 0
	}
	od
}
