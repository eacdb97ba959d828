/* Coordinator nodes: leases, owners of a partition, sessions of members, and who may expire them.
 *
 * Postgres is a set of global variables, and one guarded atomic block is one committed transaction. The expiry by a
 * timer takes two steps (locked and checked, committed), so that its process can freeze in between. Time passes in
 * ticks, and deadlines are stored as ticks that are left, which keeps the model finite however long it runs. A tick
 * waits for everything that a running process does promptly: renewals, timers, heartbeats.
 *
 * -DWRITE_THROUGH: each heartbeat writes its deadline to the store. Without it nodes answer heartbeats from memory
 * and write the deadlines behind. README.md explains the rules and names every switch that takes one out.
 * Properties, one for each run: -DS0 -DS3 -DS4 -DS4B -DS5 -DL1.
 */
#ifndef N
#define N 2            /* nodes: 2 or 3 */
#endif
#ifndef S
#define S 6            /* session timeout */
#endif
#ifndef L
#define L 3            /* life of a lease after its last renewal */
#endif
#ifndef G
#define G 0            /* grace: ticks that an expiry waits beyond the stored deadline */
#endif
#ifndef H
#define H 1            /* a live member sends a heartbeat after 1..H ticks, and gives a silent node up after one */
#endif
#ifndef T
#define T 1            /* Postgres ends a transaction after more than T ticks, or when it was idle for that long */
#endif
#ifndef MARGIN
#define MARGIN T       /* what must be left of the owner's lease when an expiry is checked */
#endif
#ifndef FAULTS
#define FAULTS 1       /* freezes and kills; a frozen or killed process returns at any time, or never */
#endif
#ifndef HANDS
#define HANDS 0        /* graceful stops and voluntary hand-overs */
#endif
#define LONGEST 3      /* -DLONG: ticks that a transaction may work between its two checks */
#define BOUND (2*L+2*S+2*G+6)

#define RUN 0
#define PAUSED 1
#define DOWN 2
#define CELERY 6
#define NONE 7
#define REARM 4

/* ---- the store ---- */
bool live[N];          /* node row: not ended */
byte left[N];          /* node row: ticks until expires_at; the node's own clock says the same or less */
bool replaced[N];      /* node row: ended by another incarnation with the same node id */
byte owner = NONE;     /* partition: the node that holds it */
bool loaded;           /* partition: ACTIVE, otherwise LOADING */
byte epoch;            /* partition: grows with every change of owner */
byte gap;              /* partition: grows when sessions could not be counted */
byte armed;            /* group: the gap under which its deadlines were armed */
bool in[2];            /* member rows */
byte dl[2];            /* member rows: ticks until the deadline; 0 is due */
bool seen[2*N];        /* written behind, [node*2+member]: flushed_until of the node >= deadline of the member */
byte lock = NONE;      /* group row: locked by the timer of a node, or by Celery */
byte lockage;
bool last;             /* that transaction: made its last check; holds the partition row FOR SHARE from then on */
byte todo;             /* that transaction: bits of the members to remove, or REARM */
byte txep;             /* that transaction: the epoch it acts under */

/* ---- memory of the processes ---- */
byte st[N] = DOWN, cst = RUN;
bool reg[N];           /* believes to be registered */
byte myep[N];          /* the epoch under which it believes to own the partition; 0: it does not */
bool beat[N];          /* has renewed its lease since the last tick */
byte mdl[2*N];         /* written behind: deadline in memory */
bool dirty[2*N];       /* written behind: touched and not flushed */
bool cur[N];           /* written behind: the cached copy of the group is current */
bool old[N];           /* written behind: ... and was not at the last tick */

/* ---- members, faults, and what only the properties read ---- */
bool dead[2];
byte hb[2];            /* ticks until the next heartbeat */
byte avoid[2] = NONE;  /* the node that was given up */
bool mcur[2];          /* knows the current generation */
byte good[2];          /* ticks left of the session promised by the last NONE */
bool pend;             /* a gap that was not re-armed yet */
byte faults = FAULTS, hands = HANDS, quiet;

#if N == 3
#define ANY(test) (test(0) || test(1) || test(2))
#define ALL(test) (test(0) && test(1) && test(2))
#else
#define ANY(test) (test(0) || test(1))
#define ALL(test) (test(0) && test(1))
#endif
#define LIVE(n) (live[n] && left[n] > 0)
#define LAPSED(n) (live[n] && left[n] == 0)
#define RUNS(n) (st[n] == RUN)
#define STOPPED(n) (st[n] != RUN)

#ifdef S4B
#define PEND pend = true
#else
#define PEND skip
#endif
#ifdef NO_GAPS
#define NEWGAP skip
#else
#define NEWGAP gap++; PEND
#endif
#ifdef DEATH_NO_GAP
#define DEATHGAP skip
#else
#define DEATHGAP NEWGAP
#endif
#ifdef SINGLE_EPOCH
#define MARK epoch
#else
#define MARK gap
#endif
#ifdef S3
#define PROMISE(m) good[m] = S
#else
#define PROMISE(m) skip
#endif
#ifdef OWN_CLOCK
byte ownleft[N];       /* a clock that stands still while its node is frozen */
#define OWNLEFT(n) ownleft[n] = L
#else
#define OWNLEFT(n) skip
#endif
#ifdef HAND_KEEPS_EPOCH
byte term, txterm;     /* hand-overs that left the epoch as it was */
#define HAND(to) owner = to; term++; loaded = 0
#define SAMETERM (epoch == txep && term == txterm)
#else
#define HAND(to) change(to)
#define SAMETERM (epoch == txep)
#endif
#ifdef NO_ACTIVE_CHECK
bool loading[N];       /* remembers that it has to set ACTIVE */
#endif

#ifdef REST
bool rest[N];          /* node row: it renews nothing in memory, and has stored all that it did */
#define RESTS(n) rest[n]
#else
#define RESTS(n) false
#endif
#define OLDARM (armed < MARK)
#if defined(WRITE_THROUGH) || defined(NO_WATERMARK)
#define FLUSHED(m) true
#else
#define UNFLUSHED0(n) (live[n] && !RESTS(n) && !seen[n*2])
#define UNFLUSHED1(n) (live[n] && !RESTS(n) && !seen[n*2+1])
#define FLUSHED(m) (m == 0 -> !ANY(UNFLUSHED0) : !ANY(UNFLUSHED1))
#endif
#define DUE(m) (in[m] && dl[m] == 0 && FLUSHED(m))
#define WORK (OLDARM || DUE(0) || DUE(1))

/* the predicate of the store: ACTIVE, and its owner has enough left of its lease */
#ifdef EXPIRE_LOADING
#define HELD (owner != NONE && live[owner] && left[owner] > MARGIN)
#else
#define HELD (owner != NONE && loaded && live[owner] && left[owner] > MARGIN)
#endif
#if defined(NO_EPOCH_CHECK)
#define MAYTIME(n, ep) (ep != 0)                                /* what it remembers */
#elif defined(OWN_CLOCK)
#define MAYTIME(n, ep) (owner == n && loaded && epoch == ep && live[n] && ownleft[n] > 0)
#else
#define MAYTIME(n, ep) (owner == n && epoch == ep && HELD)
#endif
#ifdef ANYONE_EXPIRES
#define MAYEXPIRE true
#else
#define MAYEXPIRE HELD
#endif
#ifdef NO_SHARE_LOCK
#define SHARED false
#else
#define SHARED (lock != NONE && last)                           /* a change of owner waits for the transaction */
#endif
#ifdef LONG
#define SHORT false
#else
#define SHORT true
#endif
#ifdef WRITE_THROUGH
#define UNLOCKED true
#else
#define UNLOCKED (lock == NONE)                                 /* a flush needs the rows */
#endif
/* from memory, by the node's own clock: it need not know that its row was ended */
#if defined(WRITE_THROUGH)
#define LANE(n,m) false
#elif defined(LANE_ALWAYS)
#define LANE(n,m) (mdl[n*2+m] > 0 && !(cur[n] && !mcur[m]))
#else
#define LANE(n,m) (mdl[n*2+m] > 0 && !(cur[n] && !mcur[m]) && reg[n] && left[n] > 0 && !RESTS(n))
#endif
/* a second process with the node id of the first: nodes 0 and 1 */
#ifdef DUPLICATE
#define TWIN(n) (n < 2 && live[1-n])
#define LIVETWIN(n) (n < 2 && LIVE(1-n))
#else
#define TWIN(n) false
#define LIVETWIN(n) false
#endif
#if defined(DUPLICATE_RETURNS) || defined(ADOPT)
#define MAYREGISTER(n) true
#elif defined(REPLACE_LIVE)
#define MAYREGISTER(n) (!replaced[n] || !LIVETWIN(n))           /* only one that was replaced waits */
#else
#define MAYREGISTER(n) (!LIVE(n) && !LIVETWIN(n))               /* nobody takes the id of a lease that runs */
#endif
#define HOLDS(n) (reg[n] && myep[n] != 0 && left[n] > 0)        /* owns the partition for all it knows */
#if N == 3
#define TWICE ((HOLDS(0) && HOLDS(1)) || (HOLDS(0) && HOLDS(2)) || (HOLDS(1) && HOLDS(2)))
#else
#define TWICE (HOLDS(0) && HOLDS(1))
#endif

inline free() { lock = NONE; todo = 0; txep = 0; lockage = 0; last = 0 }
inline forget(k) {
  reg[k] = 0; myep[k] = 0; beat[k] = 0; cur[k] = 0; old[k] = 0;
  mdl[k*2] = 0; mdl[k*2+1] = 0; dirty[k*2] = 0; dirty[k*2+1] = 0;
#ifdef NO_ACTIVE_CHECK
  loading[k] = 0
#endif
}
inline setdl(row, v) {
  dl[row] = v; seen[row] = 0; seen[2+row] = 0;
#if N == 3
  seen[4+row] = 0
#endif
}
inline rearm() {
#ifdef S4B
  assert(pend);                         /* once for each gap, never at a hand-over */
#endif
  printf("group re-armed\n"); pend = 0; armed = MARK; setdl(0, S+G); setdl(1, S+G)
}
inline remove(who) {
  printf("member %d removed\n", who);
#ifdef S3
  assert(good[who] == 0);
#endif
#ifdef S4
  assert(dead[who]);
#endif
  in[who] = 0; dl[who] = 0; mcur[0] = 0; mcur[1] = 0;
#if defined(L1) && !defined(WRITE_THROUGH)
  if :: cur[0] = 0 :: skip fi;          /* NOTIFY arrives, or is lost */
  if :: cur[1] = 0 :: skip fi
#endif
}
inline change(to) { owner = to; epoch++; loaded = 0 }
inline pick() {                         /* the plan names any node whose lease runs */
  if
  :: LIVE(0) -> who = 0
  :: LIVE(1) -> who = 1
#if N == 3
  :: LIVE(2) -> who = 2
#endif
  :: else -> who = NONE
  fi
}
inline ended(gone) {                    /* a row was ended: its partition goes to another, in the same transaction */
  printf("node %d declared dead\n", gone);
  if
  :: owner == gone -> pick(); change(who); who = NONE; NEWGAP
  :: else -> DEATHGAP
  fi
}
inline learn(n) {
#ifdef NO_ACTIVE_CHECK
  if :: owner == n && myep[n] != epoch && !loaded -> loading[n] = 1 :: else fi;
#endif
  if :: owner == n -> myep[n] = epoch :: else -> myep[n] = 0 fi
}
inline flushall(n) {
#ifndef WRITE_THROUGH
  if :: dirty[n*2] && in[0] && mdl[n*2] > dl[0] -> setdl(0, mdl[n*2]) :: else fi;
  if :: dirty[n*2+1] && in[1] && mdl[n*2+1] > dl[1] -> setdl(1, mdl[n*2+1]) :: else fi;
  dirty[n*2] = 0; dirty[n*2+1] = 0
#else
  skip
#endif
}
#ifdef DEFER_ANY
#define LATER(n,m) (dirty[n*2+m])
#else
#define LATER(n,m) (dirty[n*2+m] && in[m] && dl[m] >= S+G-1)     /* stored less than a tick ago: its member stays */
#endif
inline flush(n) {
#ifdef DEFER
  if
  :: LATER(n,0) -> skip
  :: dirty[n*2] && in[0] && mdl[n*2] > dl[0] -> setdl(0, mdl[n*2]); dirty[n*2] = 0
  :: else -> dirty[n*2] = 0
  fi;
  if
  :: LATER(n,1) -> skip
  :: dirty[n*2+1] && in[1] && mdl[n*2+1] > dl[1] -> setdl(1, mdl[n*2+1]); dirty[n*2+1] = 0
  :: else -> dirty[n*2+1] = 0
  fi
#else
  flushall(n)
#endif
}
inline touched(m) { PROMISE(m); avoid[m] = NONE; if :: hb[m] = 1 :: hb[m] = H fi }
inline remember(n, m) {
#ifndef WRITE_THROUGH
  if :: reg[n] -> mdl[n*2+m] = S+G; dirty[n*2+m] = 0 :: else fi
#else
  skip
#endif
}
inline heartbeat(n, m) {
  if
#ifdef ROUTE_OWNER
  :: !HOLDS(n) -> printf("member %d: node %d is not the coordinator\n", m, n);
     if
     :: owner != n && owner != NONE -> avoid[m] = (owner + N - 1) % N           /* goes to the owner that it names */
     :: else -> hb[m] = 1; avoid[m] = NONE
     fi
#ifdef LOADING_UNSTORED
  :: HOLDS(n) && !loaded -> printf("member %d: NONE from node %d, which is loading\n", m, n); touched(m)
#endif
#endif
  :: LANE(n, m) -> printf("member %d: NONE from the memory of node %d\n", m, n);
     mdl[n*2+m] = S+G; dirty[n*2+m] = 1; touched(m)
  :: else ->
     if
     :: lock != NONE -> printf("member %d: node %d is busy\n", m, n); hb[m] = 1; avoid[m] = n
     :: else ->
        if
        :: MAYEXPIRE ->
           if
           :: OLDARM -> rearm()
           :: else -> if :: DUE(1-m) -> remove(1-m) :: else fi; if :: DUE(m) -> remove(m) :: else fi
           fi
        :: else
        fi;
        printf("member %d: NONE from the store at node %d\n", m, n);
        in[m] = 1; setdl(m, S+G); remember(n, m); mcur[m] = 1; touched(m)      /* a removed one joins again */
     fi
  fi
}
inline begin(who_, ep) {                /* a timer: lock, check, decide */
  printf("timer of %d: locked and checked\n", who_); lock = who_; lockage = 0; txep = ep; last = SHORT;
#ifdef HAND_KEEPS_EPOCH
  txterm = term;
#endif
  if :: OLDARM -> todo = REARM :: else -> todo = DUE(0) + 2*DUE(1) fi
}
inline commit() {
  printf("timer of %d commits\n", lock);
#ifdef S5
  assert(owner != NONE && loaded && live[owner] && left[owner] > 0);   /* the partition has a live owner */
  assert(lock == CELERY || (owner == lock && SAMETERM));           /* a timer's node is that owner, all along */
  assert(todo == REARM || !OLDARM);                                    /* and no gap came in between */
#endif
  if
  :: todo == REARM -> if :: OLDARM -> rearm() :: else fi
  :: else -> if :: todo & 1 -> remove(0) :: else fi; if :: todo & 2 -> remove(1) :: else fi
  fi;
  free()
}

#include "processes.pml"
