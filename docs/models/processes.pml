/* The processes of sessions.pml, which includes this file: nodes, Celery, members, faults, the clock. */

#ifdef NO_SECOND_CHECK
#define COMMITS true
#else
#define COMMITS last
#endif
#define RECHECKED(w) ((todo == REARM || !OLDARM) && (w == CELERY -> HELD : MAYTIME(lock, txep)))
#define INTIME(w) (lock == w && (COMMITS || last))

inline recheck(w) {                     /* -DLONG: the whole predicate once more, directly before COMMIT */
  if
  :: RECHECKED(w) -> printf("timer of %d: checked again\n", lock); last = 1; lockage = 0
  :: else -> printf("timer of %d rolls back\n", lock); free()
  fi
}

proctype Node(byte n) {
  byte who = NONE; bool had;
  do
  :: atomic { st[n] == RUN && !reg[n] && MAYREGISTER(n) && !SHARED ->       /* register a new incarnation */
#ifdef ADOPT
       had = LAPSED(n);
#else
       had = live[n];
#endif
       printf("node %d registers\n", n); live[n] = 1; left[n] = L; reg[n] = 1; beat[n] = 1; cur[n] = 1; replaced[n] = 0;
       seen[n*2] = 0; seen[n*2+1] = 0; OWNLEFT(n);
       if :: had -> ended(n) :: else fi;                                    /* the old row is never adopted */
#ifdef DUPLICATE
       if :: TWIN(n) -> live[1-n] = 0; replaced[1-n] = 1; ended(1-n) :: else fi;
#endif
       learn(n); had = 0 }
  :: atomic { st[n] == RUN && reg[n] && !beat[n] ->                         /* renew, flush, read what it owns */
       if
#ifdef RENEW_LATE
       :: live[n] ->
#else
       :: LIVE(n) ->
#endif
          printf("node %d renews\n", n); left[n] = L; beat[n] = 1; OWNLEFT(n); learn(n);
#ifndef WRITE_THROUGH
          if
          :: lock != NONE && lock != n -> skip                              /* rows skipped stay dirty */
          :: else -> flush(n); seen[n*2] = (dl[0] == 0); seen[n*2+1] = (dl[1] == 0)
          fi
#endif
       :: else -> printf("node %d: no such row, drops everything\n", n); forget(n)
       fi }
  :: atomic { reg[n] && RUNS(n) && LIVE(n) && (owner == n -> myep[n] != epoch : myep[n] != 0) ->
       printf("node %d: NOTIFY arrives\n", n); learn(n) }
#define DECLARES(n) (st[n] == RUN && reg[n] && LIVE(n) && beat[n] && ANY(LAPSED) && !SHARED)
  :: atomic { DECLARES(n) ->
       if
       :: LAPSED(0) -> live[0] = 0; ended(0)
       :: LAPSED(1) -> live[1] = 0; ended(1)
#if N == 3
       :: LAPSED(2) -> live[2] = 0; ended(2)
#endif
       fi }
#define TAKES(n) (st[n] == RUN && reg[n] && beat[n] && owner == NONE && LIVE(n) && !SHARED)
  :: atomic { TAKES(n) -> pick(); printf("node %d gives the partition to %d\n", n, who); change(who); who = NONE; NEWGAP }
#ifdef NO_ACTIVE_CHECK
#define LOADS(n) (st[n] == RUN && loading[n])
  :: atomic { LOADS(n) && !SHARED -> loading[n] = 0;
#else
#define LOADS(n) (st[n] == RUN && owner == n && epoch == myep[n] && !loaded && LIVE(n))
  :: atomic { LOADS(n) ->
#endif
#ifdef S5
       assert(owner == n && epoch == myep[n] && LIVE(n));
#endif
       printf("node %d: ACTIVE\n", n); loaded = 1 }
#ifdef NO_TIMERS
#define BEGINS(n) false
#else
#define BEGINS(n) (st[n] == RUN && lock == NONE && MAYTIME(n, myep[n]) && WORK)
#endif
  :: atomic { BEGINS(n) -> begin(n, myep[n]) }
#ifdef LONG
  :: atomic { st[n] == RUN && lock == n && !last -> recheck(n) }
#endif
  :: atomic { st[n] == RUN && INTIME(n) -> commit() }
  :: atomic { st[n] == RUN && reg[n] && !cur[n] -> cur[n] = 1; old[n] = 0 } /* copy reloaded */
#ifdef REST
#ifdef REST_DIRTY
#define CLEAN(n) true
#else
#define CLEAN(n) (!dirty[n*2] && !dirty[n*2+1])
#endif
  :: atomic { st[n] == RUN && reg[n] && LIVE(n) && !rest[n] && CLEAN(n) -> printf("node %d rests\n", n); rest[n] = 1 }
  :: atomic { st[n] == RUN && reg[n] && LIVE(n) && rest[n] ->
       printf("node %d renews in memory\n", n); rest[n] = 0; seen[n*2] = 0; seen[n*2+1] = 0 }
#endif
  :: atomic { hands > 0 && st[n] == RUN && reg[n] && LIVE(n) && owner == n && epoch == myep[n] && !SHARED ->
       pick();                                                              /* balance: to any live node */
       if
       :: who != n && who != NONE -> printf("node %d hands the partition to %d\n", n, who); hands--; quiet = 0; myep[n] = 0; HAND(who)
       :: else
       fi; who = NONE }
  :: atomic { hands > 0 && st[n] == RUN && reg[n] && beat[n] && LIVE(n) && lock != n && !SHARED && UNLOCKED ->
       printf("node %d stops\n", n); hands--; quiet = 0; flushall(n); live[n] = 0;
       if :: owner == n -> pick(); if :: who != NONE -> HAND(who) :: else -> owner = NONE; loaded = 0 fi; who = NONE :: else fi;
       forget(n); replaced[n] = 0; st[n] = DOWN }
  od
}

#define TICKS (cst == RUN && lock == NONE && MAYEXPIRE && WORK)
proctype Celery() {
#ifndef NO_CELERY
  do
  :: atomic { TICKS -> begin(CELERY, 0) }
#ifdef LONG
  :: atomic { cst == RUN && lock == CELERY && !last -> recheck(CELERY) }
#endif
  :: atomic { cst == RUN && INTIME(CELERY) -> commit() }
  od
#endif
  skip
}

#ifdef LONG
#define WAITS false                     /* a long transaction: the member is told to come again */
#else
#define WAITS (lock != NONE && (lock == CELERY -> cst == RUN : st[lock] == RUN))       /* it is about to commit */
#endif
#define DUE_NOW(m) (!dead[m] && hb[m] == 0)
#if N == 3
#define TRIES(m,n) (DUE_NOW(m) && (avoid[m] == NONE || (avoid[m] + 1) % N == n))      /* one after the other */
#else
#define TRIES(m,n) (DUE_NOW(m) && avoid[m] != n)
#endif
#define ASKS(m,n) (TRIES(m,n) && st[n] == RUN && !WAITS)
proctype Member(byte m) {
  do
  :: atomic { ASKS(m,0) -> heartbeat(0, m) }
  :: atomic { ASKS(m,1) -> heartbeat(1, m) }
  :: atomic { TRIES(m,0) && st[0] == PAUSED -> printf("member %d gives node 0 up\n", m); hb[m] = 1; avoid[m] = 0 }
  :: atomic { TRIES(m,1) && st[1] == PAUSED -> printf("member %d gives node 1 up\n", m); hb[m] = 1; avoid[m] = 1 }
#if N == 3
  :: atomic { ASKS(m,2) -> heartbeat(2, m) }
  :: atomic { TRIES(m,2) && st[2] == PAUSED -> printf("member %d gives node 2 up\n", m); hb[m] = 1; avoid[m] = 2 }
#endif
  :: atomic { TRIES(m,0) && st[0] == DOWN && !ALL(STOPPED) -> avoid[m] = 0 }        /* refused at once */
  :: atomic { TRIES(m,1) && st[1] == DOWN && !ALL(STOPPED) -> avoid[m] = 1 }
#if N == 3
  :: atomic { TRIES(m,2) && st[2] == DOWN && !ALL(STOPPED) -> avoid[m] = 2 }
#endif
  :: atomic { DUE_NOW(m) && ALL(STOPPED) -> printf("member %d reaches nobody\n", m); hb[m] = 1; avoid[m] = NONE }
  :: atomic { m == 1 && !dead[m] -> printf("member 1 stops for good\n"); dead[m] = 1; hb[m] = 0; avoid[m] = NONE; quiet = 0 }
  od
}

inline kill(n) { printf("node %d killed\n", n); st[n] = DOWN; forget(n); replaced[n] = 0; if :: lock == n -> free() :: else fi }
inline freeze(n) { printf("node %d frozen\n", n); st[n] = PAUSED; if :: lock == n && !last -> lockage = 0 :: else fi }
inline strike(n) {
  if
  :: st[n] == RUN -> freeze(n); faults--; quiet = 0
  :: st[n] != DOWN -> kill(n); faults--; quiet = 0
  :: else
  fi
}
inline restore(n) { printf("node %d runs again\n", n); st[n] = RUN; quiet = 0; if :: lock == n && !last -> lockage = 0 :: else fi }

proctype Nemesis() {
  do
#ifdef OUTAGE                           /* all servers at once, Celery with them or not; they return in any order */
  :: atomic { faults > 0 && ALL(RUNS) -> faults = 0; quiet = 0;
       if :: freeze(0) :: kill(0) fi; if :: freeze(1) :: kill(1) fi;
#if N == 3
       if :: freeze(2) :: kill(2) fi;
#endif
       if :: printf("Celery frozen\n"); cst = PAUSED :: skip fi }
#else
  :: atomic { faults > 0 -> strike(0) }
  :: atomic { faults > 0 -> strike(1) }
#if N == 3
  :: atomic { faults > 0 -> strike(2) }
#endif
#if !defined(NO_CELERY) && !defined(NO_TIMERS)
  :: atomic { faults > 0 && cst == RUN -> printf("Celery frozen\n"); cst = PAUSED; faults--; quiet = 0 }
#endif
#endif
  :: atomic { st[0] != RUN -> restore(0) }
  :: atomic { st[1] != RUN -> restore(1) }
#if N == 3
  :: atomic { st[2] != RUN -> restore(2) }
#endif
  :: atomic { cst == PAUSED -> printf("Celery runs again\n"); cst = RUN; quiet = 0 }
  od
}

#if defined(WRITE_THROUGH) || defined(NO_STALENESS_BOUND)
#define STALE(n) false
#else
#define STALE(n) (old[n] && !cur[n])
#endif
#ifdef LONG
#define WORKING (!last && lockage < LONGEST)
#else
#define WORKING false
#endif
#define IDLE(n) (st[n] != RUN || (reg[n] -> \
   beat[n] && (lock != n || WORKING) && !STALE(n) && !DECLARES(n) && !TAKES(n) && !LOADS(n) && !BEGINS(n) \
   : !MAYREGISTER(n) || SHARED))
#ifdef NO_TIMERS
#define CELERY_IDLE (cst != RUN || (!TICKS && (lock != CELERY || WORKING)))
#else
#define CELERY_IDLE (cst != RUN || lock != CELERY || WORKING)
#endif
#define DEC(x) if :: x > 0 -> x-- :: else fi
#define STABLE(m) (dead[m] -> !in[m] : in[m] && mcur[m])

inline age() {
  if
  :: lock == NONE -> skip
#ifndef NO_TX_TIMEOUT
  :: lock != NONE && lockage >= T && (last || (lock == CELERY -> cst != RUN : st[lock] != RUN)) -> printf("Postgres ends the transaction\n"); free()
#endif
  :: else -> if :: lockage < LONGEST -> lockage++ :: else fi
  fi
}
proctype Clock() {
  do
  :: atomic { ALL(IDLE) && CELERY_IDLE && (dead[0] || hb[0] > 0) && (dead[1] || hb[1] > 0) ->
       printf("---- tick: deadlines %d %d, owner %d, leases %d %d\n", dl[0], dl[1], owner, left[0], left[1]);
       DEC(left[0]); DEC(left[1]); DEC(dl[0]); DEC(dl[1]); DEC(good[0]); DEC(good[1]); DEC(hb[0]); DEC(hb[1]);
       beat[0] = 0; beat[1] = 0;
#if N == 3
       DEC(left[2]); beat[2] = 0;
#endif
#ifndef WRITE_THROUGH
       DEC(mdl[0]); DEC(mdl[1]); DEC(mdl[2]); DEC(mdl[3]); old[0] = !cur[0] && reg[0]; old[1] = !cur[1] && reg[1];
#endif
#ifdef OWN_CLOCK
       if :: st[0] == RUN -> DEC(ownleft[0]) :: else fi; if :: st[1] == RUN -> DEC(ownleft[1]) :: else fi;
#endif
       age();
#ifdef L1
       if :: ALL(STOPPED) -> quiet = 0 :: !ALL(STOPPED) && quiet <= BOUND -> quiet++ :: else fi;
       assert(quiet <= BOUND || (STABLE(0) && STABLE(1)));
#endif
     }
#ifdef S0
  :: atomic { TWICE -> assert(false) }
#endif
  od
}

init { atomic {
  owner = 0; epoch = 1; loaded = 1; myep[0] = 1;
#ifdef SINGLE_EPOCH
  armed = 1;
#endif
  live[0] = 1; left[0] = L; st[0] = RUN; reg[0] = 1; beat[0] = 1; cur[0] = 1; OWNLEFT(0);
#ifndef DUPLICATE
  live[1] = 1; left[1] = L; st[1] = RUN; reg[1] = 1; beat[1] = 1; cur[1] = 1; OWNLEFT(1);
#endif
#if N == 3
  live[2] = 1; left[2] = L; st[2] = RUN; reg[2] = 1; beat[2] = 1; cur[2] = 1; OWNLEFT(2);
#endif
  in[0] = 1; in[1] = 1; dl[0] = S+G; dl[1] = S+G; PROMISE(0); PROMISE(1); hb[0] = 1; hb[1] = 1; mcur[0] = 1; mcur[1] = 1;
#ifndef WRITE_THROUGH
  mdl[0] = S+G; mdl[1] = S+G; mdl[2] = S+G; mdl[3] = S+G;
#endif
  run Node(0); run Node(1);
#if N == 3
  run Node(2);
#endif
  run Celery(); run Member(0); run Member(1); run Nemesis(); run Clock() } }
