/*
 * A ring between two processes: the grants and generations of the creator, the heads, parking, closes, and
 * processes that are killed. Written by hand after pkg/ring.
 *
 * Bounds: WRITERS and READERS processes, which attach once each; K packets of a writer; a ring of N packets.
 * Any side may be closed at any moment, by another thread of its process. TROUBLES times a process is
 * killed, or the creator ends.
 * Safety: a process writes to the heads only while it has the role, and the heads of a new generation are
 * untouched; packets are read in order, and are not overwritten meanwhile; a side that was closed has not
 * died for the other, and one that was killed has; of a writer that closed all packets are read.
 * Progress: nobody sleeps whose condition holds, and every call ends once its peer does.
 */
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef K
#define K 2
#endif
#ifndef TROUBLES
#define TROUBLES 0
#endif
#define N 3
#define SIDES (WRITERS + READERS)

#define W 0
#define R 1
#define ROLE(i) (i >= WRITERS)
#define UNSET 255 /* a head before its side has started */
#define NOBODY 255

mtype = { INIT, WAITING, RUNNING, CLOSED, DIED }; /* status of a head */
mtype = { AWAY, ASKS, WAITS, HOLDS, REFUSED }; /* of a connection */

byte pos[2] = UNSET; /* the memory */
mtype status[2] = INIT;
bool parked[2], event[2];
byte number[N]; /* of a packet */

mtype conn[SIDES] = AWAY;
bool hung[SIDES], killed[SIDES]; /* its process has closed it, or was killed */
bool latched[SIDES], call[SIDES]; /* the side was closed; a call of it runs */

byte held[2] = NOBODY, waits[2] = NOBODY; /* books of the creator */
bool used, mu, gone;
bool lost[2]; /* a holder was killed in this generation */
bool sleeps[2];
byte at_w, at_r, taken; /* the packet under each head; the reader has looked at it */
bool closes[2]; /* sides of this role are closed */
byte troubles;

#define OVER(r) (status[r] == CLOSED || status[r] == DIED || gone)
#define HAS_READER (status[R] != INIT)
#define HAS_ROOM (at_w < pos[R] + N - 1)
#define HAS_MORE (pos[W] != UNSET && pos[W] > at_r + taken)
#define MINE assert(held[ROLE(i)] == i)

/* ---- the creator ---- */

#ifdef NO_USED
#define USED false
#else
#define USED used
#endif
#define EMPTY (held[W] == NOBODY && held[R] == NOBODY)

inline give(i)
{
	if
	:: hung[i] /* its process has ended meanwhile */
	:: else -> conn[i] = HOLDS; held[ROLE(i)] = i; printf("MSC: gives a role to side %d\n", i)
	fi
}

/* One that has ended leaves its role, or its place among those that wait. Must hold mu. */
inline leave(i)
{
	if
	:: atomic { waits[ROLE(i)] == i -> waits[ROLE(i)] = NOBODY }
	:: atomic { waits[ROLE(i)] != i && held[ROLE(i)] == i ->
		held[ROLE(i)] = NOBODY; used = true; found = status[ROLE(i)] };
		atomic {
			if
			:: found != CLOSED -> status[ROLE(i)] = DIED; printf("MSC: side %d has died\n", i); assert(killed[i])
			:: else
			fi;
			found = INIT; event[W] = true; event[R] = true
		}
	:: waits[ROLE(i)] != i && held[ROLE(i)] != i
	fi;
	if
	:: atomic { used && EMPTY && !gone -> used = false; pos[W] = UNSET; parked[W] = false };
		atomic { status[W] = INIT; pos[R] = UNSET; parked[R] = false };
		atomic {
			status[R] = INIT; lost[W] = false; lost[R] = false;
			at_w = 0; at_r = 0; taken = 0; number[0] = 0; number[1] = 0; number[2] = 0;
			printf("MSC: begins a generation\n");
			if :: waits[W] != NOBODY -> give(waits[W]) :: else fi;
			if :: waits[R] != NOBODY -> give(waits[R]) :: else fi;
			waits[W] = NOBODY; waits[R] = NOBODY
		}
	:: !(used && EMPTY && !gone)
	fi
}

#define BEFORE(r) (USED -> waits[r] : held[r])

/* The creator's thread for a connection. */
proctype creator(byte i)
{
	mtype found = INIT;
	byte other;

	do
	:: atomic { conn[i] == ASKS && !hung[i] && !mu && !gone && BEFORE(ROLE(i)) == NOBODY ->
		if
		:: USED -> waits[ROLE(i)] = i; conn[i] = WAITS
		:: else -> give(i)
		fi;
		break
	}
	:: atomic { conn[i] == ASKS && !hung[i] && !mu && !gone && BEFORE(ROLE(i)) != NOBODY && !hung[BEFORE(ROLE(i))] -> conn[i] = REFUSED; goto out }
	:: atomic { conn[i] == ASKS && !hung[i] && !mu && !gone && BEFORE(ROLE(i)) != NOBODY && hung[BEFORE(ROLE(i))] ->
		other = BEFORE(ROLE(i)); mu = true };
		leave(other);
		atomic { mu = false; other = 0 }
	:: hung[i] || gone -> break
	od;
end_watch:
	atomic { hung[i] && !mu && !gone -> mu = true };
	leave(i);
	atomic { mu = false; conn[i] = AWAY };
out:
	skip
}

/* ---- a side ---- */

/* Wake the other side if it sleeps. */
inline wake(r)
{
	if
	:: atomic { parked[r] -> parked[r] = false; event[r] = true }
	:: !parked[r]
	fi
}

/* Wait until ready; otherwise over is why the other side does no more, or its own side was closed. */
inline await(me, ready)
{
	do
	:: over = (gone -> DIED : status[1 - me]);
		if
		:: atomic { ready -> over = INIT; break }
		:: atomic { !(ready) && latched[i] -> over = INIT; break }
		:: atomic { !(ready) && !latched[i] && (over == CLOSED || over == DIED) -> break }
		:: atomic { !(ready) && !latched[i] && over != CLOSED && over != DIED -> over = INIT }
		fi;
		parked[me] = true;
		if
#ifndef NO_SECOND_LOOK
		:: atomic { ready || OVER(1 - me) || latched[i] -> parked[me] = false }
		:: atomic { !(ready || OVER(1 - me) || latched[i]) -> sleeps[me] = true };
#else
		:: sleeps[me] = true;
#endif
end_sleeps:
			atomic { event[me] -> event[me] = false; sleeps[me] = false; parked[me] = false }
		fi
	od
}

#define ENTER atomic { !call[i] -> call[i] = true }
#define LEAVE call[i] = false

proctype writer(byte i)
{
	mtype over = INIT;

	{
		conn[i] = ASKS;
end_asks:
		if
		:: conn[i] == REFUSED -> goto out
		:: atomic { conn[i] == HOLDS && !call[i] && latched[i] -> goto out }
		:: atomic { conn[i] == HOLDS && !call[i] && !latched[i] -> call[i] = true }
		fi;
		await(W, HAS_READER);
		if :: !HAS_READER || over != INIT || latched[i] && !HAS_READER -> LEAVE; goto out :: else fi;
		atomic { MINE; assert(pos[W] == UNSET && (status[W] == INIT || latched[i])); pos[W] = 0 };
		atomic { MINE; status[W] = RUNNING; printf("MSC: stores RUNNING\n") };
		do
		:: at_w < K ->
			number[at_w % N] = at_w + 1;
			await(W, HAS_ROOM);
			if :: over != INIT || !HAS_ROOM -> break :: else fi;
			atomic { MINE; at_w++; pos[W] = at_w; printf("MSC: publishes packet %d\n", at_w) };
			wake(R);
progress_written:
			LEAVE;
			if
			:: atomic { !call[i] && latched[i] -> goto out }
			:: atomic { !call[i] && !latched[i] -> call[i] = true }
			fi
		:: at_w == K -> break
		od;
		LEAVE;
out:
		skip
	} unless { killed[i] }
}

proctype reader(byte i)
{
	mtype over = INIT;

	{
		conn[i] = ASKS;
end_asks:
		if
		:: conn[i] == REFUSED -> goto out
#ifndef LATE_START
		:: atomic { conn[i] == HOLDS && !call[i] && latched[i] -> goto out }
		:: atomic { conn[i] == HOLDS && !call[i] && !latched[i] -> call[i] = true }
#else
		:: conn[i] == HOLDS
#endif
		fi;
		atomic { MINE; assert(pos[R] == UNSET); pos[R] = 0 };
		atomic { MINE; status[R] = WAITING; printf("MSC: stores WAITING\n") };
		wake(W);
		LEAVE;
		do
		:: atomic { !call[i] && latched[i] -> goto out }
		:: atomic { !call[i] && !latched[i] -> call[i] = true };
			await(R, HAS_MORE);
			if
			:: atomic { over == CLOSED -> /* all was read */
				assert(!HAS_MORE);
				printf("MSC: has read all\n");
				break
			}
			:: atomic { over == DIED -> assert(lost[W] || gone); break }
			:: over == INIT && !HAS_MORE -> break
			:: over == INIT && HAS_MORE
			fi;
			if
			:: atomic { taken -> MINE; at_r++; pos[R] = at_r };
				wake(W)
			:: atomic { !taken -> MINE; status[R] = RUNNING; taken = 1; printf("MSC: stores RUNNING\n") }
			fi;
			atomic {
				assert(number[at_r % N] == at_r + 1);
				printf("MSC: reads packet %d\n", at_r + 1)
			};
#ifdef EARLY_RELEASE
			atomic { pos[R] = at_r + 1 };
			wake(W);
#endif
progress_read:
			assert(number[at_r % N] == at_r + 1);
			LEAVE
		od;
		LEAVE;
out:
		skip
	} unless { killed[i] }
}

/* Another thread of a side's process, which may close the side. */
proctype closer(byte i)
{
end_closer:
	{
		atomic { closes[ROLE(i)] && conn[i] == HOLDS && held[ROLE(i)] == i -> latched[i] = true; printf("MSC: closes side %d\n", i) };
#ifdef EARLY_CLOSE
		atomic { status[ROLE(i)] = CLOSED; printf("MSC: stores CLOSED\n") };
		wake(1 - ROLE(i));
#endif
		event[ROLE(i)] = true;
		ENTER;
#ifdef HANGS_UP_FIRST
		hung[i] = true;
#endif
#ifndef EARLY_CLOSE
		atomic { MINE; status[ROLE(i)] = CLOSED; printf("MSC: stores CLOSED\n") };
		wake(1 - ROLE(i));
#endif
		atomic { hung[i] = true; LEAVE }
	} unless { killed[i] }
}

/* ---- troubles ---- */

#define MAY_END(i) (!killed[i] && !hung[i] && conn[i] != AWAY)
#define KILL(i) \
	killed[i] = true; hung[i] = true; troubles++; \
	if :: held[ROLE(i)] == i -> lost[ROLE(i)] = true; sleeps[ROLE(i)] = false :: else fi; \
	printf("MSC: kills side %d\n", i)

active proctype trouble()
{
end_trouble:
	do
	:: atomic { troubles < TROUBLES && MAY_END(0) -> KILL(0) }
	:: atomic { troubles < TROUBLES && MAY_END(1) -> KILL(1) }
#if SIDES > 2
	:: atomic { troubles < TROUBLES && MAY_END(2) -> KILL(2) }
#endif
#if SIDES > 3
	:: atomic { troubles < TROUBLES && MAY_END(3) -> KILL(3) }
#endif
	:: atomic { troubles < TROUBLES -> troubles++; gone = true; event[W] = true; event[R] = true; printf("MSC: ends the creator\n") }
	od
}

/* When nothing moves any more nobody sleeps who need not. */
active proctype monitor()
{
end_monitor:
	timeout ->
	assert(!sleeps[W] || !OVER(R) && !(HAS_READER && at_w == 0 || HAS_READER && HAS_ROOM));
	assert(!sleeps[R] || !OVER(W) && !HAS_MORE)
}

init {
	byte i;

	atomic {
		if :: closes[W] = true :: true fi;
		if :: closes[R] = true :: true fi;
		for (i : 0 .. SIDES - 1) {
			run creator(i);
			run closer(i);
			if :: ROLE(i) == W -> run writer(i) :: else -> run reader(i) fi
		}
	}
}
