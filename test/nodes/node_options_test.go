package nodes

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// unfitting are options with invalid values, by their error texts.
func unfitting() map[string]asterisque.Option {
	unfitting := map[string]asterisque.Option{
		"option 1 of 1 is nil":                                                             nil,
		"WithID: 65 bytes exceed the limit of 64":                                          asterisque.WithID(string(make([]byte, 65))),
		"WithService: the Service is nil: leave the option out":                            asterisque.WithService(nil),
		"WithLogger: the logger is nil: leave the option out":                              asterisque.WithLogger(nil),
		"WithCodecs: 0 codecs are outside 1..":                                             asterisque.WithCodecs(),
		"WithCodecs: codec 2 of 2 is nil":                                                  asterisque.WithCodecs(codec.CBOR, nil),
		`WithCodecs: the codecs 1 and 3 have the same name "cbor": leave one`:              asterisque.WithCodecs(codec.CBOR, codec.JSON, codec.CBOR),
		"WithMaxOutstanding: 0 calls of function 7 are below 1":                            asterisque.WithMaxOutstanding(7, 0),
		"Timeouts.Handshake: -1s is not positive":                                          asterisque.WithTimeouts(asterisque.Timeouts{Handshake: -time.Second}),
		"Timeouts.Silence: -1s is not positive":                                            asterisque.WithTimeouts(asterisque.Timeouts{Silence: -time.Second}),
		"Timeouts.Silence: a Ping after 2s needs a Silence of at least twice that, not 3s": asterisque.WithTimeouts(asterisque.Timeouts{Ping: 2 * time.Second, Silence: 3 * time.Second}),
		"Timeouts.Write: -1s is not positive":                                              asterisque.WithTimeouts(asterisque.Timeouts{Write: -time.Second}),
		"Timeouts.Stall: -1s is not positive":                                              asterisque.WithTimeouts(asterisque.Timeouts{Stall: -time.Second}),
		"Workers.Session: -1 is below 1":                                                   asterisque.WithWorkers(asterisque.Workers{Session: -1}),
		"Priorities.LowerShare: 0.6 is above 0.5, or no number":                            asterisque.WithPriorities(asterisque.Priorities{LowerShare: 0.6}),
		"Priorities.LowerShare: NaN is above 0.5, or no number":                            asterisque.WithPriorities(asterisque.Priorities{LowerShare: math.NaN()}),
		"DurableAnswers.For: -1s is not positive":                                          asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: -time.Second}),
		"DurableAnswers.Share: 2 is outside 0..1":                                          asterisque.WithDurableAnswers(asterisque.DurableAnswers{Share: 2}),
		"DurableAnswers.Share: -1 is outside 0..1":                                         asterisque.WithDurableAnswers(asterisque.DurableAnswers{Share: -1}),
		"DurableAnswers.Share: NaN is outside 0..1":                                        asterisque.WithDurableAnswers(asterisque.DurableAnswers{Share: math.NaN()}),
		"Limits.Inbound: limits: soft limit of 5 messages must be below":                   asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(5, 4)}),
		"Limits.Outbound: limits: soft limit of -1 bytes is outside 0..":                   asterisque.WithLimits(asterisque.Limits{Outbound: limits.Limits{Soft: limits.Amount{Bytes: -1}}}),
		"Limits.MaxMessage: 12 bytes are outside 1 KiB..1 GiB":                             asterisque.WithLimits(asterisque.Limits{MaxMessage: 12}),
		"Limits.MaxMessage: -1 bytes are outside 1 KiB..1 GiB":                             asterisque.WithLimits(asterisque.Limits{MaxMessage: -1}),
		"Limits.Expansion: -1 times are below 1":                                           asterisque.WithLimits(asterisque.Limits{Expansion: asterisque.Expansion{Times: -1}}),
	}
	if large := uint64(piping.MaxWindow) + 1; uint64(math.MaxInt) >= large {
		// on platforms with an int of 64 bits
		unfitting["Limits.Window: 4294967296 is above 4294967295"] = asterisque.WithLimits(asterisque.Limits{Window: int(large)})
	}
	return unfitting
}

// An invalid option is named at the first use.
func TestOptions_NamedByFirstUse(t *testing.T) {
	for want, o := range unfitting() {
		node := asterisque.NewNode(o)
		require.ErrorContains(t, node.Check(), "asterisque: "+want)
		require.Equal(t, strings.Count(want, "; "), strings.Count(node.Check().Error(), "; "), "nothing else: %v", node.Check())
		wantErr := func(err error) {
			t.Helper()
			require.Equal(t, node.Check(), err)
		}
		_, err := node.Dial(testkit.Background, "tcp://127.0.0.1:1")
		wantErr(err)
		_, err = node.Connect(testkit.Background, "tcp://127.0.0.1:1", asterisque.ReconnectConfig{})
		wantErr(err)
		wantErr(node.ListenAndServe(testkit.Background, "tcp://127.0.0.1:0"))
		ln, err := wire.Listen(testkit.Background, "tcp://127.0.0.1:0", wire.Options{})
		require.NoError(t, err)
		wantErr(node.Serve(testkit.Background, ln))
		a, b := wire.Pipe()
		_, err = node.Accept(testkit.Background, a)
		wantErr(err)
		_, err = node.Attach(testkit.Background, b)
		wantErr(err)
		require.NotPanics(t, func() { node.Stats() })
		require.NoError(t, node.Close())
	}
}

// TestOptions_ShortDurations requires that durations without a unit, which are nanoseconds, are
// rejected.
func TestOptions_ShortDurations(t *testing.T) {
	for want, o := range map[string]asterisque.Option{
		"Timeouts.Ping is 15ns, less than 10ms: did you mean 15 * time.Second?":            asterisque.WithTimeouts(asterisque.Timeouts{Ping: 15}),
		"Timeouts.Handshake is 5µs, less than 10ms: did you mean 5000 * time.Millisecond?": asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 5000}),
		"Timeouts.Silence is 9ms, less than 10ms":                                          asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1, Silence: 9 * time.Millisecond}),
		"Timeouts.Write is 300ns, less than 10ms: did you mean 300 * time.Second?":         asterisque.WithTimeouts(asterisque.Timeouts{Write: 300}),
		"Timeouts.Stall is 60ns, less than 10ms: did you mean 60 * time.Second?":           asterisque.WithTimeouts(asterisque.Timeouts{Stall: 60}),
		"Timeouts.Drain is 30ns, less than 1ms: did you mean 30 * time.Second?":            asterisque.WithTimeouts(asterisque.Timeouts{Drain: 30}),
		"Resume.For is 90ns, less than 1ms: did you mean 90 * time.Second?":                asterisque.WithResume(asterisque.Resume{For: 90}),
		"DurableAnswers.For is 300ns, less than 1ms: did you mean 300 * time.Second?":      asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: 300}),
	} {
		require.EqualError(t, testkit.NewNode(t, o).Check(), "asterisque: "+want)
	}
	node := testkit.NewNode(t)
	for want, how := range map[string]asterisque.ReconnectConfig{
		"ReconnectConfig.First is 1ns, less than 1ms: did you mean 1 * time.Second?":        {First: 1},
		"ReconnectConfig.Most is 5µs, less than 1ms: did you mean 5000 * time.Millisecond?": {Most: 5000},
		"ReconnectConfig.MaxOutage is 60ns, less than 1ms: did you mean 60 * time.Second?":  {MaxOutage: 60, Background: true},
	} {
		conn, err := node.Connect(testkit.Background, "tcp://127.0.0.1:1", how)
		require.EqualError(t, err, "asterisque: "+want)
		require.Nil(t, conn)
	}
}

// All invalid options are named at once.
func TestOptions_AllNamedAtOnce(t *testing.T) {
	var (
		all    []asterisque.Option
		wanted []string
	)
	for want, o := range unfitting() {
		name, _, _ := strings.Cut(want, ":")
		if o == nil || slices.Contains(wanted, name) {
			continue // a later one of the same name replaces it
		}
		all, wanted = append(all, o), append(wanted, name)
	}
	err := asterisque.NewNode(all...).Check()
	for _, name := range wanted {
		require.ErrorContains(t, err, name+": ")
	}
	var many interface{ Unwrap() []error }
	require.ErrorAs(t, err, &many)
	require.Len(t, many.Unwrap(), len(wanted))
}

// A node with valid options has no error.
func TestOptions_Valid(t *testing.T) { require.NoError(t, asterisque.NewNode().Check()) }

// TestOptions_ZeroAndNegative gives each struct of options every kind of value: zero is the
// default, and negative is none.
func TestOptions_ZeroAndNegative(t *testing.T) {
	require.NoError(t, asterisque.NewNode(
		asterisque.WithAccess(asterisque.Access{}), asterisque.WithAdmission(asterisque.Admission{}), asterisque.WithResume(asterisque.Resume{}),
		asterisque.WithTimeouts(asterisque.Timeouts{}), asterisque.WithWorkers(asterisque.Workers{}), asterisque.WithPriorities(asterisque.Priorities{}),
		asterisque.WithLimits(asterisque.Limits{}), asterisque.WithDurableAnswers(asterisque.DurableAnswers{})).Check())
	require.NoError(t, asterisque.NewNode(
		asterisque.WithAdmission(asterisque.Admission{HalfOpen: -1, Sessions: -1, PerAddress: -1}), asterisque.WithResume(asterisque.Resume{For: -1}),
		asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}), asterisque.WithWorkers(asterisque.Workers{Node: -1, Waiting: -1}),
		asterisque.WithPriorities(asterisque.Priorities{LowerShare: -1}),
		asterisque.WithLimits(asterisque.Limits{Window: -1, Budget: -1, Expansion: asterisque.Expansion{Plus: -1}}),
		asterisque.WithDurableAnswers(asterisque.DurableAnswers{Calls: -1, Bytes: -1})).Check())
}

// A zero field keeps the value of an earlier option.
func TestOptions_ZeroField(t *testing.T) {
	node := asterisque.NewNode(
		asterisque.WithLimits(asterisque.Limits{Budget: 1 << 30, MaxMessage: 1 << 10}),
		asterisque.WithLimits(asterisque.Limits{MaxMessage: 1 << 20}))
	t.Cleanup(func() { node.Close() })
	require.Equal(t, 1<<30, node.Stats().Budget)
	there := asterisque.NewNode()
	t.Cleanup(func() { there.Close() })
	_, accepted := asterisquetest.ConnectNodes(t, node, there)
	_, err := accepted.Call(testkit.Background, 7, make([]byte, 1<<20+1))
	require.ErrorIs(t, err, asterisque.ErrTooLarge)
	_, err = accepted.Call(testkit.Background, 7, make([]byte, 1<<20-1<<10))
	require.ErrorIs(t, err, asterisque.ErrNoFunction, "the later value counts")
}

// TestOptions_Conflicts checks before any dial, listen or accept: the error names conflicting
// options with valid values.
func TestOptions_Conflicts(t *testing.T) {
	const names = "asterisque: Limits.MaxMessage, Workers.Session and Limits.Inbound do not fit each other: "
	for name, c := range map[string]struct {
		opts []asterisque.Option
		want string
	}{
		"a message that is too large for the soft limit": {
			[]asterisque.Option{asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(32<<20, 64<<20), MaxMessage: 8 << 20})},
			"messages of 8388608 bytes need a soft limit of 67108864 bytes, eight times as much, not 33554432",
		},
		"more workers than have windows": {
			[]asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: 10_000})},
			"10000 workers need windows of 1536 bytes each",
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := asterisque.NewNode(c.opts...)
			_, err := node.Dial(testkit.Background, "tcp://127.0.0.1:1")
			require.ErrorContains(t, err, names+c.want)
			require.ErrorContains(t, node.ListenAndServe(testkit.Background, "tcp://127.0.0.1:0"), names+c.want)
			a, _ := wire.Pipe()
			_, err = node.Accept(testkit.Background, a)
			require.ErrorContains(t, err, names+c.want)
		})
	}
	for name, opts := range map[string][]asterisque.Option{
		"the soft limit follows the largest message": {asterisque.WithLimits(asterisque.Limits{MaxMessage: 128 << 20})},
		"the largest message follows the soft limit": {asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(64<<10, 128<<10)})},
		"the workers follow the soft limit":          {asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(64, 128)})},
		"nothing is promised without windows":        {asterisque.WithWorkers(asterisque.Workers{Session: 10_000}), asterisque.WithLimits(asterisque.Limits{Window: -1})},
	} {
		t.Run(name, func(t *testing.T) {
			dialled, accepted := testkit.Connect(t, testkit.EchoService(), opts...)
			_, err := testkit.Echo.Call(testkit.Background, dialled, "x")
			require.NoError(t, err)
			testkit.WantIdle(t, dialled, accepted)
		})
	}
}
