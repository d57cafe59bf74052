package calls

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// encoded returns the encoding of m.
func encoded(t *testing.T, m asterisque.Metadata) []byte {
	b, err := message.AppendMetadata(nil, m)
	require.NoError(t, err)
	return b
}

// helloMetadata is hello for a peer that supports metadata.
func helloMetadata() message.Sync {
	h := testkit.Hello()
	h.Features = message.FeatureMetadata
	return h
}

// dialRawMetadata connects a rawPeer that supports metadata to a new node.
func dialRawMetadata(t *testing.T, opts ...asterisque.Option) (*testkit.RawPeer, *asterisque.Session) {
	t.Helper()
	node := asterisque.NewNode(opts...)
	t.Cleanup(func() { node.Close() })
	p, reply := testkit.RawTo(t, node, helloMetadata())
	require.NotZero(t, reply.Features&message.FeatureMetadata, "every node says that it knows metadata")
	return p, node.Sessions()[0]
}

// Metadata beyond its bounds is never sent.
func TestMetadata_BeyondBounds(t *testing.T) {
	many, large := fullMetadata(), fullMetadata()
	many["99"] = ""
	large["00"] = make([]byte, 127)
	for name, test := range map[string]struct {
		m      asterisque.Metadata
		reason string
	}{
		"33 entries":     {many, `metadata: entry "99": one more than the 32 entries that there may be`},
		"4097 bytes":     {large, `metadata: entry "31": with it keys and values have 4097 bytes, and 4096 are the most`},
		"a number":       {asterisque.Metadata{"k": 1}, `metadata: entry "k": a value of type int, not string or []byte`},
		"nil":            {asterisque.Metadata{"k": nil}, `metadata: entry "k": a value of type <nil>, not string or []byte`},
		"an empty key":   {asterisque.Metadata{"": "v"}, `metadata: entry "": the key is empty`},
		"not UTF-8":      {asterisque.Metadata{"k": "\xff"}, `metadata: entry "k": the text is not valid UTF-8`},
		"a key likewise": {asterisque.Metadata{"\xff": "v"}, `metadata: entry "\xff": the key is not valid UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			var n notes
			s, _ := testkit.Connect(t, teller(n.add))
			for what, call := range map[string]func() error{
				"by an option": func() error {
					_, err := tells.Call(testkit.Background, s, "", asterisque.WithMetadata(test.m))
					return err
				},
				"by the context": func() error {
					_, err := s.Call(asterisque.ContextWithMetadata(testkit.Background, test.m), 40, nil)
					return err
				},
				"of a stream": func() error {
					_, err := s.Open(testkit.Background, 42, nil, asterisque.WithMetadata(test.m))
					return err
				},
			} {
				err := call()
				require.ErrorIs(t, err, asterisque.ErrBadParams, what)
				require.ErrorContains(t, err, test.reason, what)
				require.True(t, asterisque.Repeatable(err), what)
				var a *asterisque.Abort
				require.ErrorAs(t, err, &a)
				require.Equal(t, codec.NeverSent, a.Ran, what)
				require.False(t, a.Remote, what)
			}
			_, err := tells.Call(testkit.Background, s, "", asterisque.WithMetadata(fullMetadata()))
			require.NoError(t, err, "nothing is held for what was not sent")
			require.Len(t, n.all(), 1)
			require.Zero(t, s.Stats().Outbound.Messages)
		})
	}
}

// Metadata that breaks a rule fails only its call.
func TestAttackMetadata_BadRule(t *testing.T) {
	const aMap = 0xa0 // and the number of its entries, in CBOR
	one := append([]byte{aMap | 1}, "\x61k\x61v"...)
	entries := func(n byte, list string) []byte {
		if n > 23 {
			return append([]byte{aMap | 24, n}, list...)
		}
		return append([]byte{aMap | n}, list...)
	}
	many, large := strings.Builder{}, fullMetadata()
	for i := range 33 {
		many.WriteString("\x62" + string(rune('0'+i/10)) + string(rune('0'+i%10)) + "\x60")
	}
	delete(large, "31")
	over := entries(32, string(encoded(t, large)[2:]))
	over = append(append(over, "\x6231\x78\x7f"...), strings.Repeat("v", 127)...)
	for reason, data := range map[string][]byte{
		`entry "32": one more than the 32 entries that there may be`:               entries(33, many.String()),
		`entry "31": with it keys and values have 4097 bytes, and 4096 are`:        over,
		`entry "k": with it keys and values have 60001 bytes`:                      append(entries(1, "\x61k\x59\xea\x60"), make([]byte, 60_000)...),
		`entry "k": the key comes twice`:                                           entries(2, "\x61k\x61v\x61k\x61w"),
		`entry 1: the key is an unsigned integer, not a text string`:               entries(1, "\x01\x61v"),
		`entry "k": the value is an array, not a text string or a byte string`:     entries(1, "\x61k\x80"),
		`entry "": the key is empty`:                                               entries(1, "\x60\x61v"),
		`byte 0: it is a simple value or floating-point number, not a map`:         {0xf6},
		`byte 5: 1 bytes after the map`:                                            append(one, 0),
		`entry "k": ends in the middle`:                                            one[:3],
		`byte 0: it has more elements`:                                             {aMap | 27, 0, 31, 255, 255, 255, 255, 255, 255},
		`byte 0: indefinite length`:                                                {aMap | 31, 0xff},
		`entry "` + strings.Repeat("k", 64) + `": with it keys and values have 50`: append(entries(1, "\x79\xc3\x50"+strings.Repeat("k", 50_000)), 0x60),
	} {
		t.Run(reason, func(t *testing.T) {
			var n notes
			p, s := dialRawMetadata(t, asterisque.WithService(teller(n.add)))
			rounds := 200 // more than the room for Opens would hold of some, were it not given back
			for i := range rounds {
				o := &message.Open{Pipe: uint64(4 * i), Function: 40, Params: []byte{0x60}, Meta: message.Meta{Metadata: data}}
				p.Send(o)
				c := p.Answer()
				require.Equal(t, o.Pipe, c.Pipe)
				require.ErrorIs(t, c.Abort, asterisque.ErrBadParams)
				require.Contains(t, c.Abort.Message, "metadata: "+reason)
				require.Equal(t, codec.Refused, c.Abort.Ran)
				o.Pipe, o.Meta.Metadata = o.Pipe+2, one
				p.Send(o)
				require.Nil(t, p.Answer().Abort, "the next one runs")
			}
			require.Len(t, n.all(), rounds)
			require.NoError(t, s.Err())
		})
	}
}

// A nested call with refused metadata leaves its place to the next one.
func TestMetadata_RefusedNested(t *testing.T) {
	svc := testkit.CallsBackService()
	tells.Handle(svc, func(ctx context.Context, _ string) (map[string]any, error) { return asterisque.MetadataOf(ctx), nil })
	p, s := dialRawMetadata(t, asterisque.WithService(svc))
	p.Send(&message.Open{Pipe: 0, Function: 51})
	back := p.Open()
	for i := range uint64(1000) {
		o := testkit.Within(&message.Open{Pipe: 2 + 2*i, Function: 40, Params: []byte{0x60}}, back.Pipe)
		o.Meta.Metadata = []byte{0}
		p.Send(o)
		require.ErrorIs(t, p.Answer().Abort, asterisque.ErrBadParams)
	}
	o := testkit.Within(&message.Open{Pipe: 3000, Function: 40, Params: []byte{0x60}}, back.Pipe)
	o.Meta.Metadata = encoded(t, fullMetadata())
	p.Send(o)
	require.Nil(t, p.Answer().Abort)
	require.NoError(t, s.Err())
}

// A key of Meta that is no byte string ends the session.
func TestMetaKey_EndsSession(t *testing.T) {
	p, s := dialRawMetadata(t, asterisque.WithService(teller(ignore)))
	p.SendFrame(testkit.Unhex(t, "86010018280040a108a0"))
	p.WantSessionClose(codec.Protocol, "metadata is a map, not a byte string")
	<-s.Done()
}

// A peer without the feature bit for metadata gets the call without it; the bytes of its parts
// besides parameters are fewer.
func TestMetadata_OlderPeer(t *testing.T) {
	for name, old := range map[string]bool{"an older peer": true, "a peer that knows it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := helloMetadata()
				if old {
					h.Features = 0
				}
				node := asterisque.NewNode()
				defer node.Close()
				p, _ := testkit.RawTo(t, node, h)
				s := node.Sessions()[0]
				for _, size := range []int{0, 100_000} {
					errs := make(chan error, 1)
					go func() {
						_, err := s.Call(testkit.Background, 1, make([]byte, size), asterisque.WithMetadata(fullMetadata()))
						errs <- err
					}()
					o := p.Open()
					if require.Len(t, o.Params, size); old {
						require.Empty(t, o.Meta)
					} else {
						require.Equal(t, encoded(t, fullMetadata()), o.Meta.Metadata)
					}
					p.Send(&message.Close{Pipe: o.Pipe})
					require.NoError(t, <-errs)
				}
				_, err := s.Call(testkit.Background, 1, nil, asterisque.WithMetadata(asterisque.Metadata{"": ""}))
				require.ErrorIs(t, err, asterisque.ErrBadParams, "whom it would have gone to makes no difference")
			})
		})
	}
}

// Metadata uses the room for Opens as parameters do, on both sides.
func TestMetadata_CostOfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fullMetadata()
		cost := (&message.Open{Meta: message.Meta{Metadata: encoded(t, m)}}).Cost(512, 0)
		require.Greater(t, cost, uint64(4096+512))
		h := helloMetadata()
		h.Window, h.Opens, h.MaxMessage = 512, 10*cost+1, 8<<10
		node := asterisque.NewNode()
		defer node.Close()
		p, _ := testkit.RawTo(t, node, h)
		s := node.Sessions()[0]
		urgent := asterisque.WithPriority(1) // which may use all of it
		for range 11 {
			go s.Call(testkit.Background, 1, nil, urgent, asterisque.WithMetadata(m))
		}
		for range 10 {
			p.Open()
		}
		p.Send(message.Ping{N: 7})
		require.Equal(t, message.Pong{N: 7}, p.Control(), "the eleventh waits for room")
		p.Send(message.Credit{Opens: true, Limit: 11*cost - 1})
		p.Send(message.Ping{N: 8})
		require.Equal(t, message.Pong{N: 8}, p.Control(), "for all that it costs")
		p.Send(message.Credit{Opens: true, Limit: 11 * cost})
		require.Equal(t, encoded(t, m), p.Open().Meta.Metadata)
	})
}
