package asterisquetest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
)

func newPeer(t testing.TB, opts ...asterisque.Option) *asterisquetest.Peer {
	p := asterisquetest.NewPeer(t, opts...)
	greet.Handle(p.Service, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	sum.Handle(p.Service, add)
	return p
}

// program is a node of the program under test.
func program(t testing.TB, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(append(opts, asterisque.WithID("program"))...)
	t.Cleanup(func() { n.Close() })
	return n
}

// A program reaches its peer by URL, by a session, and as a Caller.
func TestPeer_ReachedEachWay(t *testing.T) {
	for name, reach := range map[string]func(t testing.TB, p *asterisquetest.Peer) asterisque.Caller{
		"it dials": func(t testing.TB, p *asterisquetest.Peer) asterisque.Caller {
			s, err := program(t).Dial(background, p.URL())
			require.NoError(t, err)
			return s
		},
		"it keeps a connection": func(t testing.TB, p *asterisquetest.Peer) asterisque.Caller {
			c, err := program(t).Connect(background, p.URL(), asterisque.ReconnectConfig{})
			require.NoError(t, err)
			return c
		},
		"it gets a session": func(t testing.TB, p *asterisquetest.Peer) asterisque.Caller { return p.Connect(program(t)) },
		"it gets a Caller":  func(_ testing.TB, p *asterisquetest.Peer) asterisque.Caller { return p },
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T) {
				require.Empty(t, run(func(t2 *fakeT) {
					p := newPeer(t2)
					on := reach(t2, p)
					got, err := greet.Call(background, on, "asterisk")
					require.NoError(t, err)
					require.Equal(t, "hello, asterisk", got)
					n, err := sumOf(background, on, 1, 2, 3)
					require.NoError(t, err)
					require.Equal(t, 6, n)
					raw, err := asterisque.CallOn(background, on, greet.Number(), []byte{0x61, 'x'})
					require.NoError(t, err)
					require.Equal(t, "\x68hello, x", string(raw))

					s, err := p.Session(background)
					require.NoError(t, err)
					require.Equal(t, "program", s.Peer().ID)
				}))
			})
		})
	}
}

// The peer calls functions of the program.
func TestPeer_CallsProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := asterisquetest.NewPeer(t)
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() { _, err := p.Session(ctx); waiting <- err }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-waiting, context.Canceled, "no program has connected")

		sessions := make(chan *asterisque.Session)
		for range 3 {
			go func() {
				s, err := p.Session(t.Context())
				if err != nil {
					t.Error(err)
				}
				sessions <- s
			}()
		}
		node := program(t, asterisque.WithService(service()))
		found := map[*asterisque.Session]bool{}
		for range 3 {
			p.Connect(node)
		}
		for range 3 {
			s := <-sessions
			found[s] = true
			got, err := greet.Call(t.Context(), s, "asterisk")
			require.NoError(t, err)
			require.Equal(t, "hello, asterisk", got)
		}
		require.Len(t, found, 3, "each is returned once")
		require.Len(t, p.Node().Sessions(), 3)
	})
}

// A call of a function that the peer does not have fails the test.
func TestPeer_MissingFunction(t *testing.T) {
	type order struct {
		Item  string
		Count int
	}
	everywhere(t, func(t *testing.T) {
		buy := asterisque.Func[order, string](77, "buy")
		watch := asterisque.Stream[string, int, int, int](78, "watch")
		for name, c := range map[string]struct {
			opts []asterisque.Option
			call func(on asterisque.Caller) error
			want string
		}{
			"values": {nil, func(on asterisque.Caller) error {
				_, err := buy.Call(background, on, order{"tea", 3})
				return err
			}, `function 77, for which its peer has no handler, with map[Count:3 Item:tea]`},
			"stream": {nil, func(on asterisque.Caller) error {
				c, err := watch.Open(background, on, "prices")
				if err == nil {
					_, err = c.Result(background)
				}
				return err
			}, `function 78, for which its peer has no handler, with "prices"`},
			"nothing": {nil, func(on asterisque.Caller) error {
				_, err := asterisque.CallOn(background, on, 79, nil)
				return err
			}, `function 79, for which its peer has no handler, with no bytes`},
			"bytes": {nil, func(on asterisque.Caller) error {
				_, err := asterisque.CallOn(background, on, 79, []byte{0xff, 1})
				return err
			}, `with "\xff\x01"`},
			"JSON": {[]asterisque.Option{asterisque.WithCodecs(codec.JSON)}, func(on asterisque.Caller) error {
				_, err := buy.Call(background, on, order{"tea", 3})
				return err
			}, `with {"Item":"tea","Count":3}`},
			"much": {nil, func(on asterisque.Caller) error {
				_, err := greet.Call(background, on, strings.Repeat("x", 1000))
				return err
			}, `with "` + strings.Repeat("x", 399) + "… (1002 bytes)"},
		} {
			said := run(func(t2 *fakeT) {
				p := asterisquetest.NewPeer(t2, c.opts...)
				require.ErrorIs(t, c.call(p), asterisque.ErrNoFunction, name)
			})
			require.Len(t, said, 1, name)
			require.True(t, strings.HasPrefix(said[0], "asterisquetest: the program has called function "), said[0])
			require.True(t, strings.HasSuffix(said[0], c.want), "%s: %s", name, said[0])
		}
	})
}

// The number of reported unexpected calls is bounded.
func TestPeer_UnexpectedIsBounded(t *testing.T) {
	for n, want := range map[int]int{20: 20, 21: 21, 100: 21} {
		said := run(func(t2 *fakeT) {
			p := asterisquetest.NewPeer(t2)
			for i := range n {
				asterisque.CallOn(background, p, uint16(i), nil)
			}
		})
		require.Len(t, said, want)
		if n > 20 {
			require.Equal(t, fmt.Sprintf("asterisquetest: and %d more of these", n-20), said[20])
		}
	}
}

// A call that still runs at the peer fails the test.
func TestPeer_LeftCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var place string
		said := run(func(t2 *fakeT) {
			p := newPeer(t2)
			place = at(1)
			_, err := sum.Open(background, p, 1)
			require.NoError(t, err)
			synctest.Wait()
		})
		require.Len(t, said, 1)
		require.Contains(t, said[0], `program has called function 20 "sum" at `+place+", 5s ago")
		require.Contains(t, said[0], `peer serves function 20 "sum", for 5s`)
	})
}

// A peer that cannot be reached fails the test.
func TestPeer_Unreachable(t *testing.T) {
	invalid := asterisque.WithWorkers(asterisque.Workers{Session: -7})
	for name, c := range map[string]struct {
		use  func(t *fakeT, p *asterisquetest.Peer)
		want string
	}{
		"URL":     {func(_ *fakeT, p *asterisquetest.Peer) { p.URL() }, "the peer cannot listen: "},
		"Connect": {func(t *fakeT, p *asterisquetest.Peer) { p.Connect(program(t)) }, "the nodes do not connect: "},
	} {
		said := run(func(t *fakeT) { c.use(t, asterisquetest.NewPeer(t, invalid)) })
		require.Len(t, said, 1, name)
		require.Contains(t, said[0], c.want)
		require.Contains(t, said[0], "-7")
	}
	require.Empty(t, run(func(t2 *fakeT) {
		_, err := greet.Call(background, asterisquetest.NewPeer(t2, invalid), "x")
		require.ErrorContains(t, err, "-7")
		require.True(t, asterisque.Repeatable(err))
	}), "a Caller may be called on any goroutine, and fails its calls")
}

// The peer reports nothing after the end of the test.
func TestPeer_AfterTheTest(t *testing.T) {
	var p *asterisquetest.Peer
	require.Empty(t, run(func(t2 *fakeT) {
		p = newPeer(t2)
		_, err := greet.Call(background, p, "x")
		require.NoError(t, err)
	}))
	_, err := greet.Call(background, p, "x")
	require.ErrorIs(t, err, asterisque.ErrSessionClosed)
	run(func(t2 *fakeT) { p = newPeer(t2) })
	_, err = greet.Call(background, p, "x")
	require.Error(t, err, "nothing begins after the test")
}
