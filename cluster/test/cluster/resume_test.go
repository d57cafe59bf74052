package cluster_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// resuming are the options of both sides. Without PlainCredentials, a session through NATS cannot
// be resumed, as other clients could read the secrets.
var resuming = []asterisque.Option{
	asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAccess(asterisque.Access{PlainCredentials: true}),
}

// anywhere makes a node resume the sessions of its name, and listen.
func anywhere(cfg cluster.Config) cluster.Config {
	cfg.ResumeAnywhere = true
	cfg = listening(cfg)
	if cfg.TLS != nil {
		cfg.Listen = []string{"tls://127.0.0.1:0"}
	}
	return cfg
}

// balancer dials one of several addresses, and cuts the present connection.
type balancer struct {
	tls   *tls.Config                 // nil: none; fixed
	other map[*cluster.Cluster]string // addresses in place of the announced ones; fixed

	mu   sync.Mutex
	to   string    // guarded by mu, as conn
	conn io.Closer // the latest
}

func (b *balancer) dial(ctx context.Context) (wire.Wire, error) {
	b.mu.Lock()
	to := b.to
	b.mu.Unlock()
	secure := b.tls.Clone() // nil of nil
	if secure != nil {
		secure.ServerName = "orders"
	}
	w, err := wire.Dial(ctx, to, wire.Options{TLS: secure})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.conn = w
	b.mu.Unlock()
	return w, nil
}

// lead cuts the connection, and directs the next one to c.
func (b *balancer) lead(c *cluster.Cluster) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.to = b.other[c]; b.to == "" {
		b.to = address(c)
	}
	if b.conn != nil {
		b.conn.Close()
	}
}

// connect connects a node outside of the cluster to one of several nodes.
func (b *balancer) connect(t *testing.T, to *cluster.Cluster, opts ...asterisque.Option) *asterisque.Connection {
	t.Helper()
	node := asterisque.NewNode(append(resuming, opts...)...)
	t.Cleanup(func() { node.Close() })
	b.lead(to)
	conn, err := node.Connect(t.Context(), "", asterisque.ReconnectConfig{First: time.Millisecond, Most: 50 * time.Millisecond, Dial: b.dial})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// running opens a call that runs until it is ended.
func running(t *testing.T, on asterisque.Caller) *asterisque.StreamCall[struct{}, struct{}, struct{}] {
	t.Helper()
	call, err := hold.Open(t.Context(), on, struct{}{})
	require.NoError(t, err)
	_, err = call.Recv(t.Context())
	require.NoError(t, err)
	return call
}

// soonAnswers waits until a node answers: calls of a session that cannot be resumed fail.
func soonAnswers(t *testing.T, on asterisque.Caller, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err := ownID.Call(t.Context(), on, struct{}{})
		return err == nil && got == id
	}, natstest.Timeout, time.Millisecond)
}

func TestResume_AnyNode(t *testing.T) {
	t.Parallel()
	a := testtls.NewAuthority(t)
	for how, secure := range map[string]bool{"without TLS": false, "with TLS": true} {
		t.Run(how, func(t *testing.T) {
			b, nodes, balance := natstest.StartServer(t, broker.Config{}), []*cluster.Cluster(nil), new(balancer)
			for _, id := range []string{"a", "b", "c"} {
				cfg := config(b, "orders", id)
				if secure {
					cfg = proving(a, cfg, "orders")
				}
				nodes = append(nodes, joined(t, anywhere(cfg), resuming...))
			}
			if secure {
				balance.tls = proving(a, cluster.Config{}, "client").TLS
			}
			conn := balance.connect(t, nodes[0])
			first, call := conn.Session(), running(t, conn)
			for _, i := range []int{1, 2, 0, 1} {
				balance.lead(nodes[i])
				require.Equal(t, "a", ask(t, conn))
				require.Same(t, first, conn.Session())
			}
			require.NoError(t, call.Send(t.Context(), struct{}{}))
			_, err := call.Result(t.Context())
			require.NoError(t, err)
			require.Len(t, nodes[0].Node().Sessions(), 1)
			require.Empty(t, nodes[1].Node().Sessions())
		})
	}
}

func TestResume_NodeGone(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b, balance := natstest.StartServer(t, broker.Config{}), new(balancer)
		gone := joined(t, anywhere(config(b, "orders", "a")), resuming...)
		there := joined(t, anywhere(config(b, "orders", "b")), resuming...)
		conn := balance.connect(t, gone)
		call := running(t, conn)
		require.NoError(t, gone.Close())
		balance.lead(there)
		_, err := call.Result(t.Context())
		require.Error(t, err)
		require.False(t, asterisque.Repeatable(err))
		require.Equal(t, "b", ask(t, conn))
	})
}

func TestResumeRecords_EarlierRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b, balance := natstest.StartServer(t, broker.Config{}), new(balancer)
		cfg := anywhere(config(b, "orders", "a"))
		first := joined(t, cfg, resuming...)
		there := joined(t, anywhere(config(b, "orders", "b")), resuming...)
		conn := balance.connect(t, first)
		old := conn.Session()
		first.Conn().Close() // so that the record stays
		require.NoError(t, first.Close())
		joined(t, cfg, resuming...)
		balance.lead(there)
		soonAnswers(t, conn, "b")
		require.NotSame(t, old, conn.Session())
	})
}

func TestResume_DuringOutage(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		b, balance := natstest.StartServer(t, broker.Config{Dir: dir}), new(balancer)
		has := joined(t, anywhere(config(b, "orders", "a")), resuming...)
		there := joined(t, anywhere(config(b, "orders", "b")), resuming...)
		conn := balance.connect(t, has)
		first, call := conn.Session(), running(t, conn)
		again := natstest.Restarted(b, dir)
		require.NoError(t, b.Close())
		balance.lead(there)
		natstest.StartServer(t, again)
		require.NoError(t, call.Send(t.Context(), struct{}{}))
		_, err := call.Result(t.Context())
		require.NoError(t, err)
		require.Same(t, first, conn.Session())
	})
}

func TestResumeRecords_AfterOutage(t *testing.T) {
	t.Parallel()
	for how, test := range map[string]struct {
		dir    string
		before bool // the session begins before the outage of NATS
	}{
		"they begin while it is away": {t.TempDir(), false},
		"it has lost all":             {"", true},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				b, balance := natstest.StartServer(t, broker.Config{Dir: test.dir}), new(balancer)
				has := joined(t, anywhere(config(b, "orders", "a")), resuming...)
				there := joined(t, anywhere(config(b, "orders", "b")), resuming...)
				var conn *asterisque.Connection
				if test.before {
					conn = balance.connect(t, has)
				}
				again := natstest.Restarted(b, test.dir)
				require.NoError(t, b.Close())
				if !test.before {
					conn = balance.connect(t, has)
				}
				first := conn.Session()
				natstest.StartServer(t, again)
				require.Eventually(t, func() bool {
					_, err := entry(t, has, "sessions", "orders."+first.ID().String())
					return err == nil
				}, natstest.Timeout, 10*time.Millisecond)
				balance.lead(there)
				require.Equal(t, "a", ask(t, conn))
				require.Same(t, first, conn.Session())
			})
		})
	}
}

// An unrenewed record expires after an hour.
func TestResumeRecords_Renewed(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b, balance := natstest.StartServer(t, broker.Config{}), new(balancer)
		has := joined(t, anywhere(config(b, "orders", "a")), resuming...)
		conn := balance.connect(t, has)
		key := "orders." + conn.Session().ID().String()
		var first uint64
		require.Eventually(t, func() bool {
			e, err := entry(t, has, "sessions", key)
			if err == nil {
				first = e.Revision()
			}
			return err == nil
		}, natstest.Timeout, 10*time.Millisecond)
		fakeclock.Sleep(90 * time.Minute)
		e, err := entry(t, has, "sessions", key)
		require.NoError(t, err)
		require.Greater(t, e.Revision(), first)
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool {
			_, err := entry(t, has, "sessions", key)
			return errors.Is(err, jetstream.ErrKeyNotFound)
		}, natstest.Timeout, 10*time.Millisecond, "it is deleted with the session")
	})
}

// relayed asks the node at w for a session, as another node does for a peer with TLS.
func relayed(w wire.Wire, s *asterisque.Session) ([]byte, error) {
	frame, err := json.Marshal(map[string]any{"session": s.ID(), "network": "tcp", "addr": "1.2.3.4:5", "secure": true})
	if err != nil {
		return nil, err
	}
	w.WriteFrames([][]byte{frame})
	return w.ReadFrame(64)
}

func TestAttackResume_ForgedPeer(t *testing.T) {
	t.Parallel()
	a := testtls.NewAuthority(t)
	b, balance := natstest.StartServer(t, broker.Config{}), new(balancer)
	has := joined(t, anywhere(proving(a, config(b, "orders", "a"), "orders")), resuming...)
	balance.tls = proving(a, cluster.Config{}, "client").TLS
	conn := balance.connect(t, has)
	for node, identity := range map[string]string{"a node of another name": "rogue", "one of the name": "orders"} {
		cfg := proving(a, cluster.Config{}, identity).TLS
		cfg.ServerName = "orders"
		w, err := natswire.Dial(t.Context(), plainly(t, b), "main.orders.a.resume", cfg)
		var reply []byte
		if err == nil {
			reply, err = relayed(w, conn.Session())
		}
		if identity == "orders" {
			require.NoError(t, err, node)
			require.Equal(t, "here", string(reply), node)
			w.Close()
			continue
		}
		require.Error(t, err, node)
	}
	for _, frame := range []string{"", "{", `{"session":"x"}`, `{"session":[1]}`} {
		cfg := proving(a, cluster.Config{}, "orders").TLS
		cfg.ServerName = "orders"
		w, err := natswire.Dial(t.Context(), plainly(t, b), "main.orders.a.resume", cfg)
		require.NoError(t, err)
		w.WriteFrames([][]byte{[]byte(frame)})
		reply, err := w.ReadFrame(64)
		require.True(t, err != nil || string(reply) == "not here", frame)
		w.Close()
	}
	require.Equal(t, "a", ask(t, conn), "its session continues")
}

func TestAttackResume_ForgedPeerOwnTLS(t *testing.T) {
	t.Parallel()
	a := testtls.NewAuthority(t)
	b, balance := natstest.StartServer(t, broker.Config{}), new(balancer)
	cfg := proving(a, config(b, "orders", "a"), "orders")
	chosen := cfg.TLS.Clone()
	chosen.ClientAuth = tls.NoClientCert
	cfg.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
	has := joined(t, anywhere(cfg), resuming...)
	balance.tls = proving(a, cluster.Config{}, "client").TLS
	conn := balance.connect(t, has)
	for identity, believed := range map[string]bool{"rogue": false, "orders": true} {
		own := proving(a, cluster.Config{}, identity).TLS
		own.ServerName = "orders"
		w, err := natswire.Dial(t.Context(), plainly(t, b), "main.orders.a.resume", own)
		require.NoError(t, err)
		reply, _ := relayed(w, conn.Session())
		require.Equal(t, believed, string(reply) == "here", identity)
		w.Close()
	}
}

func TestResume_UnverifiedCertificate(t *testing.T) {
	t.Parallel()
	a := testtls.NewAuthority(t)
	b, balance := natstest.StartServer(t, broker.Config{}), &balancer{other: make(map[*cluster.Cluster]string)}
	// a listener unknown to the cluster
	own := asterisque.WithTLS(proving(a, cluster.Config{}, "orders").TLS)
	var nodes []*cluster.Cluster
	for _, id := range []string{"a", "b"} {
		c := joined(t, anywhere(config(b, "orders", id)), append(resuming, own)...)
		ln, err := wire.Listen(t.Context(), "tls://127.0.0.1:0", wire.Options{TLS: proving(a, cluster.Config{}, "orders").TLS})
		require.NoError(t, err)
		go c.Node().Serve(t.Context(), ln) // ends with the node
		balance.other[c] = ln.URL()
		nodes = append(nodes, c)
	}
	balance.tls = proving(a, cluster.Config{}, "client").TLS
	conn := balance.connect(t, nodes[0])
	first := conn.Session()
	balance.lead(nodes[1])
	soonAnswers(t, conn, "b") // in a new session
	require.NotSame(t, first, conn.Session())
}

func TestResume_OtherLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "other", "o"))
		_, err := jetStream(t, c).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
			Bucket: "asterisque_main_sessions", TTL: time.Minute, Metadata: map[string]string{kv.ClusterKey: "asterisque"},
		})
		require.NoError(t, err)
		_, err = cluster.Join(t.Context(), anywhere(config(b, "orders", "a")))
		var bucket *cluster.BucketError
		require.ErrorAs(t, err, &bucket)
		require.Equal(t, []string{"asterisque_main_sessions", "time to live", "1m0s"}, []string{bucket.Bucket, bucket.What, bucket.Have})
		_, err = cluster.Join(t.Context(), cluster.Config{NATS: b.URL(), ResumeAnywhere: true})
		require.ErrorContains(t, err, "needs a name")
	})
}

// plainly returns a connection without restrictions.
func plainly(t *testing.T, b *broker.Broker) *nats.Conn {
	t.Helper()
	return natstest.Connect(t, b)
}
