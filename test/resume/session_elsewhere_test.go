package resume

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// replicas are nodes behind one address that know each other's sessions.
type replicas struct {
	records asterisque.Repository
	byID    map[string]*asterisque.Node // fixed after newReplicas, as urls
	urls    []string

	mu    sync.Mutex
	next  int   // replica of the next connection; guarded by mu, as fail
	fail  error // what reaching another replica fails with
	asked atomic.Int64
}

// newReplicas returns nodes with these ids that offer svc.
func newReplicas(t *testing.T, svc *asterisque.Service, ids []string, opts ...asterisque.Option) *replicas {
	t.Helper()
	rs := &replicas{records: asterisque.NewRepository(), byID: make(map[string]*asterisque.Node)}
	for _, id := range ids {
		rs.add(t, svc, id, opts...)
	}
	return rs
}

// add adds a node that offers svc.
func (rs *replicas) add(t *testing.T, svc *asterisque.Service, id string, opts ...asterisque.Option) {
	t.Helper()
	n := asterisque.NewNode(append([]asterisque.Option{
		asterisque.WithID(id), asterisque.WithService(svc),
		asterisque.WithResume(asterisque.Resume{For: time.Minute, Records: rs.records, Elsewhere: rs.elsewhere}),
	}, opts...)...)
	t.Cleanup(func() { n.Close() })
	rs.byID[id] = n
	rs.urls = append(rs.urls, testkit.Serve(t, n))
}

// elsewhere is Resume.Elsewhere.
func (rs *replicas) elsewhere(_ context.Context, r asterisque.SessionRecord, _ asterisque.Peer) (wire.Wire, error) {
	rs.asked.Add(1)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	n := rs.byID[r.Node]
	if n == nil || rs.fail != nil {
		return nil, rs.fail
	}
	a, b := wire.Pipe()
	go n.AcceptRelayed(testkit.Background, b) // ends with the handshake
	return a, nil
}

// lead directs new connections to a replica.
func (rs *replicas) lead(i int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.next = i
}

func (rs *replicas) failWith(err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.fail = err
}

// connect connects a new node to the replicas.
func (rs *replicas) connect(t *testing.T) (*asterisque.Connection, *testkit.Cutter) {
	t.Helper()
	c := new(testkit.Cutter)
	here := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	t.Cleanup(func() { here.Close() })
	conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{
		First: time.Millisecond, Most: 10 * time.Millisecond,
		Dial: func(ctx context.Context) (wire.Wire, error) {
			rs.mu.Lock()
			to := testkit.Cutter{URL: rs.urls[rs.next]}
			rs.mu.Unlock()
			w, err := to.Dial(ctx)
			if err == nil {
				c.Mu.Lock()
				c.Conn = to.Conn
				c.Mu.Unlock()
			}
			return w, err
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, c
}

var whoServes = asterisque.Func[string, string](1, "who serves")

// namedService returns the name of the node that runs a call, and holds the calls that ask for it.
func namedService(held chan string) *asterisque.Service {
	svc := asterisque.NewService()
	whoServes.Handle(svc, func(ctx context.Context, how string) (string, error) {
		if how == "wait" {
			select {
			case held <- "":
			case <-ctx.Done():
			}
			<-ctx.Done()
		}
		if how == "later" {
			held <- ""
			<-held
		}
		return how, nil
	})
	return svc
}

// A peer continues its session through any replica.
func TestReplicas_AnyContinues(t *testing.T) {
	held := make(chan string)
	rs := newReplicas(t, namedService(held), []string{"a", "b", "c"})
	conn, wires := rs.connect(t)
	first := conn.Session()
	answer := make(chan error, 1)
	go func() { // ends with its call
		_, err := whoServes.Call(testkit.Background, conn, "later")
		answer <- err
	}()
	<-held
	for _, next := range []int{1, 2, 0, 2} {
		rs.lead(next)
		wires.Cut()
		got, err := whoServes.Call(testkit.Background, conn, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		require.Same(t, first, conn.Session())
	}
	held <- ""
	require.NoError(t, <-answer, "one that has run all the time")
	require.EqualValues(t, 3, rs.asked.Load(), "the replica with the session asks no other")
	require.Len(t, rs.byID["a"].Sessions(), 1)
	require.Empty(t, rs.byID["b"].Sessions())
	require.Empty(t, rs.byID["c"].Sessions())
}

// Cuts that lead to other replicas lose, repeat and reorder nothing.
func TestReplicas_NothingLost(t *testing.T) {
	svc, ran := onceService()
	rs := newReplicas(t, svc, []string{"a", "b", "c"})
	conn, wires := rs.connect(t)
	var step int
	requireOnceDespiteCuts(t, conn, ran, func() {
		step++
		rs.lead(step % 3)
		wires.Cut()
	}, 50)
}

// A session ends if its replica is gone.
func TestReplicas_Gone(t *testing.T) {
	held := make(chan string, 1)
	rs := newReplicas(t, namedService(held), []string{"a", "b"})
	conn, wires := rs.connect(t)
	first := conn.Session()
	answer := make(chan error, 1)
	go func() { // ends with its call
		_, err := whoServes.Call(testkit.Background, conn, "wait")
		answer <- err
	}()
	<-held
	rs.lead(1)
	rs.mu.Lock()
	delete(rs.byID, "a")
	rs.mu.Unlock()
	wires.Cut()
	err := <-answer
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.False(t, asterisque.Repeatable(err), "it may have run")
	_, err = whoServes.Call(testkit.Background, conn, "x")
	require.NoError(t, err)
	require.NotSame(t, first, conn.Session())
	require.Len(t, rs.byID["b"].Sessions(), 1)
}

// A peer retries while its replica cannot be reached.
func TestReplicas_Unreachable(t *testing.T) {
	for name, fail := range map[string]error{
		"any error":        errors.New("NATS is away"),
		"one for the peer": asterisque.ErrOverloaded.Withf("too many"),
	} {
		t.Run(name, func(t *testing.T) {
			rs := newReplicas(t, namedService(nil), []string{"a", "b"})
			conn, wires := rs.connect(t)
			first := conn.Session()
			rs.lead(1)
			rs.failWith(fail)
			wires.Cut()
			require.Eventually(t, func() bool { return rs.asked.Load() > 3 }, testkit.Patience, time.Millisecond)
			require.ErrorContains(t, conn.Outage().Why, map[bool]string{true: "too many", false: "the node that has the session cannot be reached"}[name == "one for the peer"])
			rs.failWith(nil)
			_, err := whoServes.Call(testkit.Background, conn, "x")
			require.NoError(t, err)
			require.Same(t, first, conn.Session())
		})
	}
}

// unread is a Repository whose Get fails at times.
type unread struct {
	asterisque.Repository
	fails atomic.Bool
	asked atomic.Int64
}

func (u *unread) Get(ctx context.Context, id asterisque.SessionID) (asterisque.SessionRecord, bool, error) {
	u.asked.Add(1)
	if u.fails.Load() {
		return asterisque.SessionRecord{}, false, testkit.ErrBroken
	}
	return u.Repository.Get(ctx, id)
}

// A peer retries while the holder of its session is unknown.
func TestReplicas_UnknownHolder(t *testing.T) {
	rs := newReplicas(t, namedService(nil), nil)
	records := &unread{Repository: rs.records}
	rs.records = records
	for _, id := range []string{"a", "b"} {
		rs.add(t, namedService(nil), id)
	}
	conn, wires := rs.connect(t)
	first := conn.Session()
	records.fails.Store(true)
	for i := range 2 {
		rs.lead(1 - i)
		before := records.asked.Load()
		wires.Cut()
		testkit.Settled(t, func() bool { return records.asked.Load() > before+3 })
		require.ErrorContains(t, conn.Outage().Why, "which node has the session")
	}
	records.fails.Store(false)
	_, err := whoServes.Call(testkit.Background, conn, "x")
	require.NoError(t, err)
	require.Same(t, first, conn.Session())
}

// A relay ends with the shutdown of its node, and the session does not.
func TestRelay_EndsWithNode(t *testing.T) {
	for name, end := range map[string]func(*asterisque.Node) error{
		"shutdown": func(n *asterisque.Node) error { return n.Shutdown(testkit.Background) },
		"close":    (*asterisque.Node).Close,
	} {
		t.Run(name, func(t *testing.T) {
			held := make(chan string)
			rs := newReplicas(t, namedService(held), []string{"a", "b"})
			conn, wires := rs.connect(t)
			first := conn.Session()
			rs.lead(1)
			wires.Cut()
			answer := make(chan error, 1)
			go func() { // ends with its call
				_, err := whoServes.Call(testkit.Background, conn, "later")
				answer <- err
			}()
			<-held
			rs.lead(0)
			require.NoError(t, end(rs.byID["b"]), "it waits for no call that it only relays")
			held <- ""
			require.NoError(t, <-answer)
			require.Same(t, first, conn.Session())
		})
	}
}

// A relayed handshake begins no session.
func TestRelay_BeginsNoSession(t *testing.T) {
	node := asterisque.NewNode(asterisque.WithID("a"), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	defer node.Close()
	for name, says := range map[string]message.Sync{
		"a new one":           testkit.Resumable(),
		"one that never was":  testkit.Resuming(message.Sync{Session: make([]byte, message.SessionSize), Secret: make([]byte, message.SecretSize)}, 0),
		"one without resumes": testkit.Hello(),
	} {
		a, b := wire.Pipe()
		p := &testkit.RawPeer{T: t, W: wiretest.Faulty(a, wiretest.Faults{})}
		refused := make(chan error, 1)
		go func() { // ends with the handshake
			_, err := node.AcceptRelayed(testkit.Background, b)
			refused <- err
		}()
		p.Send(says)
		c, ok := p.Control().(message.SessionClose)
		require.True(t, ok, name)
		require.Equal(t, asterisque.ErrUnavailable.Code, c.Code)
		require.ErrorIs(t, <-refused, asterisque.ErrUnavailable)
		p.W.Close()
	}
	require.Empty(t, node.Sessions())
}

// A relay counts as a session.
func TestRelay_CountsAsSession(t *testing.T) {
	rs := newReplicas(t, namedService(nil), []string{"a", "b"}, asterisque.WithAdmission(asterisque.Admission{Sessions: 1}))
	conn, wires := rs.connect(t)
	rs.lead(1)
	wires.Cut()
	_, err := whoServes.Call(testkit.Background, conn, "x")
	require.NoError(t, err)
	other := asterisque.NewNode()
	defer other.Close()
	_, err = other.Dial(testkit.Background, rs.urls[1])
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
	conn.Close()
	require.Eventually(t, func() bool {
		s, err := other.Dial(testkit.Background, rs.urls[1])
		return err == nil && s.Close() == nil
	}, testkit.Patience, time.Millisecond, "its place is free again")
}

// lingers is a Wire that is slow to close.
type lingers struct{ wire.Wire }

func (l lingers) Close() error {
	fakeclock.Sleep(500 * time.Millisecond)
	return l.Wire.Close()
}

// Many relays end at the same time.
func TestRelay_EndConcurrently(t *testing.T) {
	for name, end := range map[string]func(*asterisque.Node) error{
		"shutdown": func(n *asterisque.Node) error { return n.Shutdown(testkit.Background) },
		"close":    (*asterisque.Node).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := message.Sync{Session: make([]byte, message.SessionSize), Secret: make([]byte, message.SecretSize)}
				first.Session[0] = 1
				records := asterisque.NewRepository()
				records.Put(testkit.Background, asterisque.SessionRecord{Session: asterisque.SessionID(first.Session), Node: "gone"})
				n := asterisque.NewNode(asterisque.WithID("b"), asterisque.WithResume(asterisque.Resume{
					For: time.Minute, Records: records,
					Elsewhere: func(context.Context, asterisque.SessionRecord, asterisque.Peer) (wire.Wire, error) {
						a, b := wire.Pipe()
						t.Cleanup(func() { b.Close() })
						return lingers{a}, b.WriteFrames([][]byte{testkit.Hello().AppendTo(nil)})
					},
				}))
				for range 20 {
					p, accepted := testkit.PipeAccepted(t, n)
					p.Send(testkit.Resuming(first, 0))
					<-accepted
				}
				begin := time.Now()
				require.NoError(t, end(n))
				require.Less(t, time.Since(begin), 3*time.Second)
			})
		})
	}
}

// A relay accepts as much from a peer as its session does, beyond the limits of the relaying node.
func TestRelay_FullWindow(t *testing.T) {
	grant := &asterisque.Grant{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 32 << 20}}}
	rs := newReplicas(t, namedService(nil), []string{"a", "b"}, asterisque.WithAccess(asterisque.Access{
		Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) { return grant, nil },
	}), asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 128 << 10}}}))
	conn, wires := rs.connect(t)
	first := conn.Session()
	large := strings.Repeat("x", 3<<20)
	_, err := whoServes.Call(testkit.Background, conn, large)
	require.NoError(t, err)
	rs.lead(1)
	wires.Cut()
	ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
	defer cancel()
	_, err = whoServes.Call(ctx, conn, large)
	require.NoError(t, err)
	require.Same(t, first, conn.Session())
}
