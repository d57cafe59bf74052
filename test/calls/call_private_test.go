package calls

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

var errDatabase = errors.New("dial 10.1.2.3:5432: no route")

// failsAs is a service with functions that fail with err: unary 30, stream 31, and 32, which aborts
// its pipe.
func failsAs(err error) *asterisque.Service {
	svc := asterisque.NewService()
	asterisque.Func[int, int](30, "unary").Handle(svc, func(context.Context, int) (int, error) { return 0, err })
	asterisque.Stream[int, int, int, int](31, "stream").Handle(svc, func(context.Context, int, *asterisque.Pipe[int, int]) (int, error) { return 0, err })
	svc.Handle(32, "aborts", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		p.Abort(err)
		return nil, nil
	})
	return svc
}

// connection connects two nodes in memory; the Connection reconnects until the test ends.
func connection(t *testing.T, here, there *asterisque.Node) *asterisque.Connection {
	t.Helper()
	t.Cleanup(func() { here.Close(); there.Close() })
	c, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: func(context.Context) (wire.Wire, error) {
		near, far := wire.Pipe()
		go there.Accept(testkit.Background, far) // ends with the handshake
		return near, nil
	}})
	require.NoError(t, err)
	return c
}

// callsOf returns the calls of failsAs, and a durable one.
func callsOf(s *asterisque.Connection) map[string]func() error {
	unary := asterisque.Func[int, int](30, "unary")
	stream := func(function uint16) error {
		c, err := asterisque.Stream[int, int, int, int](function, "stream").Open(testkit.Background, s, 1)
		if err != nil {
			return err
		}
		_, err = c.Result(testkit.Background)
		return err
	}
	return map[string]func() error{
		"unary": func() error { _, err := unary.Call(testkit.Background, s, 1); return err },
		"durable": func() error {
			_, err := unary.Call(testkit.Background, s, 1, asterisque.WithDurable())
			return err
		},
		"stream": func() error { return stream(31) },
		"aborts": func() error { return stream(32) },
	}
}

// Errors of handlers cross with their text.
func TestErrors_TextOfHandler(t *testing.T) {
	dialled := connection(t, asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(failsAs(errDatabase))))
	for kind, call := range callsOf(dialled) {
		a := new(asterisque.Abort)
		require.ErrorAs(t, call(), &a, kind)
		require.Equal(t, codec.Failed, a.Code, kind)
		require.Equal(t, errDatabase.Error(), a.Message, kind)
	}
}

// Private errors stay in the log.
func TestPrivate_StaysInLog(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code asterisque.Code
	}{
		"plain":        {errDatabase, codec.Failed},
		"of a context": {fmt.Errorf("%w: %w", errDatabase, context.DeadlineExceeded), codec.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(testkit.Logged)
			dialled := connection(t, asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(failsAs(c.err)), asterisque.WithPrivateErrors(), log.Option()))
			for kind, call := range callsOf(dialled) {
				a := new(asterisque.Abort)
				require.ErrorAs(t, call(), &a, kind)
				require.Equal(t, c.code, a.Code, kind)
				require.Regexp(t, `^internal error, id [0-9a-f]{8}$`, a.Message, kind)
				line := log.LineWith(t, a.Message[len("internal error, id "):])
				require.Contains(t, line, "level=WARN", kind)
				require.Contains(t, line, errDatabase.Error(), kind)
				require.Regexp(t, `function=3[012] name=(unary|stream|aborts)`, line, kind)
			}
		})
	}
}

// Aborts, and the end of a context, are not private.
func TestPrivate_NotForAborts(t *testing.T) {
	for want, err := range map[string]error{
		"asterisque: code 1007: ask the doorman (said by the peer)": fmt.Errorf("within: %w", &asterisque.Abort{Code: 1007, Message: "ask the doorman", Cause: errDatabase}),
		"asterisque: canceled: context canceled (said by the peer)": context.Canceled,
	} {
		log := new(testkit.Logged)
		dialled := connection(t, asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(failsAs(err)), asterisque.WithPrivateErrors(), log.Option()))
		for kind, call := range callsOf(dialled) {
			require.EqualError(t, call(), want, kind)
		}
		require.NotContains(t, log.String(), "handler failed")
	}
}

// The decision of WithAccept determines the error text for a peer.
func TestPrivate_AcceptDecides(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want asterisque.Code
		text string
	}{
		"decided":   {asterisque.ErrUnauthorized.Withf("members only"), codec.Unauthorized, "^members only$"},
		"a code":    {&asterisque.Abort{Code: 1001, Message: "closed on Sundays", Cause: errDatabase}, 1001, "^closed on Sundays$"},
		"undecided": {errDatabase, codec.Unavailable, "^the peer could not be checked: internal error, id [0-9a-f]{8}$"},
		"too late":  {context.DeadlineExceeded, codec.Unavailable, "id [0-9a-f]{8}$"},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(testkit.Logged)
			there := asterisque.NewNode(log.Option(), asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) { return nil, c.err }}))
			defer there.Close()
			here := asterisque.NewNode()
			defer here.Close()
			near, far := wire.Pipe()
			accepted := make(chan error, 1)
			go func() { _, err := there.Accept(testkit.Background, far); accepted <- err }()
			_, err := here.Attach(testkit.Background, near)
			a := new(asterisque.Abort)
			require.ErrorAs(t, err, &a)
			require.Equal(t, c.want, a.Code)
			require.Regexp(t, c.text, a.Message)
			require.ErrorIs(t, <-accepted, c.err, "the program that accepts learns why")
			if _, id, ok := strings.Cut(a.Message, "internal error, id "); ok {
				require.Contains(t, log.LineWith(t, "id="+id), c.err.Error())
			}
		})
	}
}

// TestErrors_SmallPeer requires that an error with a long message, a long detail or both is reduced
// to fit a peer that accepts messages of 1,024 bytes.
func TestErrors_SmallPeer(t *testing.T) {
	const takes = 1 << 10
	long := strings.Repeat("ß", 3000)
	advice := asterisque.ErrOverloaded.Withf("%s", long)
	advice.Detail = codec.OverloadedFor(3*time.Second, "").Detail
	for name, c := range map[string]struct {
		err             error
		code            asterisque.Code
		message, detail int // bytes that cross
	}{
		"long message":     {&asterisque.Abort{Code: 1001, Message: long}, 1001, takes, 0},
		"long detail":      {&asterisque.Abort{Code: 1002, Message: "short", Detail: make([]byte, takes+1)}, 1002, 5, 0},
		"both":             {&asterisque.Abort{Code: 1003, Message: long, Detail: make([]byte, 5000)}, 1003, takes, 0},
		"together":         {&asterisque.Abort{Code: 1004, Message: long, Detail: make([]byte, 1001)}, 1004, 22, 1001},
		"detail that fits": {&asterisque.Abort{Code: 1005, Message: "short", Detail: make([]byte, takes)}, 1005, 0, takes},
		"advice":           {advice, codec.Overloaded, takes - 4, 3},
		"plain":            {errors.New(long), codec.Failed, takes, 0},
		"of a context":     {fmt.Errorf("%s: %w", long, context.Canceled), codec.Canceled, takes, 0},
	} {
		t.Run(name, func(t *testing.T) {
			here := asterisque.NewNode(asterisque.WithLimits(asterisque.Limits{MaxMessage: takes}))
			there := asterisque.NewNode(asterisque.WithService(failsAs(c.err)))
			dialled := connection(t, here, there)
			for kind, call := range callsOf(dialled) {
				a := new(asterisque.Abort)
				require.ErrorAs(t, call(), &a, kind)
				require.Equal(t, c.code, a.Code, kind)
				require.Len(t, a.Message, c.message, kind)
				require.Len(t, a.Detail, c.detail, kind)
				if name == "advice" {
					d, ok := asterisque.RetryAfter(a)
					require.True(t, ok)
					require.Equal(t, 3*time.Second, d)
				}
			}
		})
	}
}

// TestErrors_SessionSmallPeer refuses a session, and ends one, with a peer that accepts frames of
// at most 1,024 bytes.
func TestErrors_SessionSmallPeer(t *testing.T) {
	long := asterisque.ErrUnauthorized.Withf("%s", strings.Repeat("x", 3000))
	node := asterisque.NewNode(asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) { return nil, long }}))
	defer node.Close()
	a, b := wire.Pipe()
	p := &testkit.RawPeer{T: t, W: a}
	go node.Accept(testkit.Background, b)
	p.Send(testkit.Hello())
	frame := p.Frame()
	require.LessOrEqual(t, len(frame), 1024)
	c, err := message.ParseControl(frame)
	require.NoError(t, err)
	require.Equal(t, codec.Unauthorized, c.(message.SessionClose).Code)
	require.NotEmpty(t, c.(message.SessionClose).Message)
}
