package attack

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// rawOverNet connects a rawPeer to a node over a connection without a buffer, on which the node's
// reader finds frames together that were written together. Every message of the node goes to the
// returned channel.
func rawOverNet(t *testing.T, node *asterisque.Node) (c net.Conn, heard chan []byte) {
	t.Helper()
	here, there := net.Pipe()
	go node.Accept(testkit.Background, wire.FromConn(there)) // ends with the handshake
	p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
	p.Send(testkit.Hello())
	p.Control()
	heard = make(chan []byte, 10_000)
	go func() { // ends with the connection
		defer close(heard)
		for {
			f, err := p.W.ReadFrame(2 << 20)
			if err != nil {
				return
			}
			heard <- append([]byte(nil), f...)
		}
	}()
	return here, heard
}

// pongsOf returns the numbers of the received Pongs, and the number of other messages.
func pongsOf(t *testing.T, heard chan []byte) (numbers []uint64, others int) {
	t.Helper()
	synctest.Wait()
	for len(heard) > 0 {
		c, err := message.ParseControl(<-heard)
		if pong, ok := c.(message.Pong); ok && err == nil {
			numbers = append(numbers, pong.N)
		} else {
			others++
		}
	}
	return numbers, others
}

func manyPings(from, n int) (b []byte) {
	for i := range n {
		b = append(b, testkit.Frames(message.Ping{N: uint64(from + i)})...)
	}
	return b
}

// Many Pings are answered at a bounded rate.
func TestAttackPings_AnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		c, heard := rawOverNet(t, node)
		defer c.Close()
		fakeclock.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		const seconds, each = 5, 500
		var all []uint64
		for second := range seconds {
			for i := range each { // one by one, so that no two are answered together
				_, err := c.Write(manyPings(second*each+i, 1))
				require.NoError(t, err)
				synctest.Wait()
			}
			numbers, others := pongsOf(t, heard)
			require.Zero(t, others)
			require.LessOrEqual(t, len(numbers), 102)
			require.GreaterOrEqual(t, len(numbers), 100)
			all = append(all, numbers...)
			fakeclock.Sleep(time.Second)
		}
		numbers, _ := pongsOf(t, heard)
		all = append(all, numbers...)
		require.IsIncreasing(t, all)
		require.Equal(t, uint64(seconds*each-1), all[len(all)-1], "the last one is always answered")
		fakeclock.Sleep(time.Hour)
		numbers, _ = pongsOf(t, heard)
		require.Empty(t, numbers, "and once")
	})
}

// Pings that arrive together are answered together.
func TestPings_AnsweredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		c, heard := rawOverNet(t, node)
		defer c.Close()
		_, err := c.Write(manyPings(1, 50))
		require.NoError(t, err)
		numbers, _ := pongsOf(t, heard)
		require.Equal(t, []uint64{50}, numbers)
	})
}

// Pings that arrive together cost one write over TCP.
func TestPings_OneWriteOverTCP(t *testing.T) {
	p, _ := testkit.DialRaw(t)
	require.NoError(t, p.W.(wire.BatchWriter).WriteBatch(manyPings(1, 50)))
	for n := 0; ; n++ {
		require.Less(t, n, 5, "the kernel may have cut them apart, but not often")
		if p.Control() == (message.Pong{N: 50}) {
			return
		}
	}
}

// A few Pings are answered at once.
func TestPings_FewAtOnce(t *testing.T) {
	p, _ := testkit.StuckPeer(t)
	for n := range uint64(90) {
		p.Send(message.Ping{N: 1<<53 - 90 + n})
		require.Equal(t, message.Pong{N: 1<<53 - 90 + n}, p.Control())
	}
}

// TestPings_BesideMuchData sends one Ping for each 64 KiB, and requires that each Ping is answered
// at once.
func TestPings_BesideMuchData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(1, "sink", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil })
		node := asterisque.NewNode(asterisque.WithService(svc))
		defer node.Close()
		c, heard := rawOverNet(t, node)
		defer c.Close()
		pongs := 0
		for n := range uint64(300) {
			_, err := c.Write(testkit.Frames(&message.Open{Pipe: 2 * n, Function: 1, Params: make([]byte, 64<<10)}, message.Ping{N: n}))
			require.NoError(t, err)
			numbers, _ := pongsOf(t, heard)
			pongs += len(numbers)
		}
		require.Equal(t, 300, pongs)
	})
}

// TestAttackPings_NoReading uses a peer that sends Pings and does not read: their answers hold no
// memory.
func TestAttackPings_NoReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		here, there := net.Pipe()
		defer here.Close()
		go node.Accept(testkit.Background, wire.FromConn(there)) // ends with the handshake
		p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
		p.Send(testkit.Hello())
		p.Control()
		for i := range 200 {
			_, err := here.Write(manyPings(100*i, 100))
			require.NoError(t, err)
			fakeclock.Sleep(100 * time.Millisecond)
		}
		require.Less(t, p.Control().(message.Pong).N, uint64(100), "what was being written")
		require.Equal(t, message.Pong{N: 19_999}, p.Control(), "the newest of the rest")
	})
}

// Unsolicited Controls do no harm.
func TestAttackControls_Unasked(t *testing.T) {
	for name, c := range map[string]struct {
		say  []byte
		ends bool
	}{
		"a Pong":                             {testkit.Frames(message.Pong{N: 7}), false},
		"a Pong of the largest number":       {testkit.Frames(message.Pong{N: 1<<53 - 1}), false},
		"a Pong above the largest number":    {append([]byte{0, 0, 0, 12}, 0x83, 0, 3, 0x1b, 255, 255, 255, 255, 255, 255, 255, 255), true},
		"a Ping above the largest number":    {append([]byte{0, 0, 0, 12}, 0x83, 0, 2, 0x1b, 255, 255, 255, 255, 255, 255, 255, 255), true},
		"an Ack, where nothing can resume":   {testkit.Frames(message.Ack{Count: 1<<53 - 1}), false},
		"a Credit of the largest number":     {testkit.Frames(message.Credit{Opens: true, Limit: 1<<53 - 1}), false},
		"a lower Credit":                     {testkit.Frames(message.Credit{Opens: true}), false},
		"a Drain of what was never opened":   {testkit.Frames(message.Drain{Last: 1<<53 - 1}), false},
		"an unknown Control":                 {testkit.Frames(message.UnknownControl{Code: 99}), false},
		"a Stop of a pipe that never was":    {testkit.Frames(message.Stop{Pipe: 4}), true},
		"a Credit for a pipe that never was": {testkit.Frames(message.Credit{Pipe: 4, Limit: 1}), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := asterisque.NewNode()
				defer node.Close()
				conns, sessions := testkit.Attackers(t, 1, node, testkit.Hello())
				heard := make(chan error)
				go func() { // ends with the connection
					_, err := wire.FromConn(conns[0]).ReadFrame(1 << 20)
					heard <- err
				}()
				for range 2000 {
					conns[0].Write(c.say) // an error is that of the end
				}
				synctest.Wait()
				if c.ends {
					require.NoError(t, <-heard)
					require.ErrorIs(t, sessions[0].Err(), asterisque.ErrProtocol)
					return
				}
				require.NoError(t, sessions[0].Err())
				require.Zero(t, sessions[0].Stats().Outbound.Messages)
				require.Zero(t, sessions[0].Path().RoundTrip)
				conns[0].Close()
				require.Error(t, <-heard, "nothing was answered")
			})
		})
	}
}

// A final message in place of a Sync is refused.
func TestAttackHandshake_Farewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		here, there := net.Pipe()
		defer here.Close()
		refused := make(chan error)
		go func() { _, err := node.Attach(testkit.Background, wire.FromConn(there)); refused <- err }()
		p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
		require.IsType(t, message.Sync{}, p.Control())
		p.Send(message.SessionClose{Code: 4711, Message: "no"})
		err := <-refused
		var a *asterisque.Abort
		require.True(t, testkit.AsAbort(err, &a))
		require.Equal(t, codec.Code(4711), a.Code)
		require.True(t, asterisque.Repeatable(err))

		here, there = net.Pipe()
		defer here.Close()
		go func() { _, err := node.Accept(testkit.Background, wire.FromConn(there)); refused <- err }()
		p = &testkit.RawPeer{T: t, W: wire.FromConn(here)}
		p.Send(message.SessionClose{Code: 4711, Message: "no"})
		require.ErrorContains(t, <-refused, "no")
		require.Empty(t, node.Sessions())
	})
}
