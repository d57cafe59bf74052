package attack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestAttackIdle_CreditUnread uses a peer that repeatedly grants credit to idle streams, and does
// not read the Skips that return it.
func TestAttackIdle_CreditUnread(t *testing.T) {
	const streams = 40
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Unbuffered()
		svc := asterisque.NewService()
		svc.Handle(50, "waits", testkit.WaitForContext)
		node := testkit.NewNode(t, asterisque.WithService(svc), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1, Write: time.Hour}))
		go node.Accept(testkit.Background, b) // ends with the handshake
		p := &testkit.RawPeer{T: t, W: a}
		hello := testkit.Hello()
		hello.Window = 4096
		p.Send(hello)
		require.IsType(t, message.Sync{}, p.Control())
		for i := range streams {
			p.Send(&message.Open{Pipe: uint64(2 * i), Function: 50, Meta: message.Meta{Stream: true, Window: 1 << 20}})
		}
		var held [2]int
		for n := range 800 {
			fakeclock.Sleep(time.Second)
			for i := range streams {
				p.Send(message.Credit{Pipe: uint64(2 * i), Limit: uint64(n+2) << 20})
			}
			synctest.Wait()
			held[n/400] = node.Sessions()[0].Stats().Outbound.Messages
		}
		require.GreaterOrEqual(t, held[0], streams, "it is handed back again")
		require.Equal(t, held[0], held[1], "behind a full batch waits one Skip of each stream")
		a.Close()
	})
}

// TestAttackIdle_SkipsAgainstTheRules has a peer that hands back what it has not, and more.
func TestAttackIdle_SkipsAgainstTheRules(t *testing.T) {
	const most = 1<<53 - 1
	type sends = interface{ AppendTo([]byte) []byte }
	stream := &message.Open{Function: 50, Meta: message.Meta{Stream: true, Window: 1 << 20}}
	block := func(n int) *message.Block { return &message.Block{Payload: make([]byte, n)} }
	whole := block(3000).AppendTo(nil)
	part := &message.Part{Whole: uint64(len(whole)), Bytes: whole[:2000]}
	for name, c := range map[string]struct {
		does    []sends
		refused string // by the end of the session; "": it goes on
	}{
		"of a pipe that was never opened": {[]sends{message.Skip{Pipe: 8, Sent: 1}}, "never opened"},
		"of one of the other side's":      {[]sends{message.Skip{Pipe: 9, Sent: 1}}, "never opened"},
		"of the highest pipe":             {[]sends{message.Skip{Pipe: most, Sent: 1}}, "never opened"},
		"of a unary call":                 {[]sends{&message.Open{Function: 50}, message.Skip{Sent: most}}, ""},
		"of all that is granted":          {[]sends{stream, message.Skip{Sent: 4096}}, ""},
		"of more than that":               {[]sends{stream, message.Skip{Sent: most}}, "were not granted"},
		"of less than has come":           {[]sends{stream, block(1000), message.Skip{Sent: 1000}}, "have come before"},
		"of nothing, twice":               {[]sends{stream, message.Skip{Sent: 4000}, message.Skip{Sent: 4000}}, ""},
		"taken back":                      {[]sends{stream, message.Skip{Sent: 4000}, message.Skip{Sent: 3999}}, "have come before"},
		"behind the end":                  {[]sends{stream, &message.Block{End: true}, message.Skip{Sent: most}}, ""},
		"behind the Close":                {[]sends{stream, &message.Close{Abort: codec.ErrCanceled}, message.Skip{Sent: most}}, ""},
		"behind a Stop":                   {[]sends{stream, message.Stop{}, message.Skip{Sent: 3000}}, ""},
		"in the middle of a Block":        {[]sends{stream, part, message.Skip{Sent: 4000}}, "unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			svc := testkit.EchoService()
			svc.Handle(50, "waits", testkit.WaitForContext)
			p, _ := testkit.DialRaw(t, asterisque.WithService(svc))
			for _, m := range c.does {
				p.SendFrame(m.AppendTo(nil))
			}
			if c.refused != "" {
				bye := p.UntilCredit(most)
				require.Equal(t, codec.Protocol, bye.Code)
				require.Contains(t, bye.Message, c.refused)
			} else {
				p.Echoes(100)
			}
		})
	}
}
