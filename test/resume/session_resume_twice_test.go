package resume

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// One of two concurrent resumes gets the session.
func TestResume_TwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, ran := countService()
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		_, first := testkit.RawTo(t, node, testkit.Resumable())
		type answer struct {
			*testkit.RawPeer
			sync message.Control
		}
		answers := make(chan answer, 2)
		for range 2 {
			p := testkit.PipeTo(t, node)
			go func() { // ends with an answer
				p.W.WriteFrames([][]byte{testkit.Resuming(first, 0).AppendTo(nil)})
				f, err := p.W.ReadFrame(1 << 20)
				if err != nil {
					t.Error(err)
				}
				c, err := message.ParseControl(f)
				if err != nil {
					t.Error(err)
				}
				answers <- answer{p, c}
			}()
		}
		synctest.Wait()
		var has *testkit.RawPeer
		// One answer is waiting, or the later attempt has closed the wire of the other.
		count := len(answers)
		for range count {
			p := <-answers
			require.Equal(t, first.Session, p.sync.(message.Sync).Session)
			if p.W.WriteFrames([][]byte{message.Ping{}.AppendTo(nil)}) == nil {
				require.Nil(t, has, "one has the session")
				has = p.RawPeer
			}
		}
		has.Send(&message.Open{Pipe: 0, Function: 50})
		has.Answer()
		require.EqualValues(t, 1, ran.Load())
		synctest.Wait()
		require.Len(t, node.Sessions(), 1)
		if count == 1 {
			has.W.Close()
			p := <-answers
			require.NotEqual(t, first.Session, p.sync.(message.Sync).Session, "the other was heard of")
		}
	})
}

// heldWire is a Wire that holds its frames until held is closed.
type heldWire struct {
	wire.Wire
	held chan struct{}
}

func (w heldWire) WriteFrames(frames [][]byte) error {
	<-w.held
	return w.Wire.WriteFrames(frames)
}

// TestResume_WaitForSession resumes a session twice, the second time while the node answers on the
// first Wire, which fails later.
func TestResume_WaitForSession(t *testing.T) {
	for name, heard := range map[string]bool{
		"nothing comes over the first Wire":                   false,
		"over the first Wire comes a frame: its secret is it": true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, ran := countService()
				node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
				defer node.Close()
				p, first := testkit.RawTo(t, node, testkit.Resumable())
				p.Send(&message.Open{Pipe: 0, Function: 50})
				p.Answer()
				here, there := wire.Pipe()
				begins, waits := &testkit.RawPeer{T: t, W: here}, testkit.PipeTo(t, node)
				held := make(chan struct{})
				go node.Accept(testkit.Background, heldWire{there, held}) // ends with the handshake
				begins.Send(testkit.Resuming(first, 0))
				synctest.Wait()
				waits.Send(testkit.Resuming(first, 0))
				synctest.Wait()
				close(held)
				require.Equal(t, first.Session, begins.Control().(message.Sync).Session)
				if heard {
					begins.Send(message.Ping{})
				}
				synctest.Wait()
				begins.W.Close()

				again := waits.Control().(message.Sync)
				require.Equal(t, heard, !bytes.Equal(again.Session, first.Session))
				if !heard {
					require.EqualValues(t, 1, again.Received)
					require.EqualValues(t, 0, waits.Answer().Pipe, "of which it had received nothing")
				}
				waits.Send(&message.Open{Pipe: 2, Function: 50})
				require.EqualValues(t, 2, waits.Answer().Pipe)
				require.EqualValues(t, 2, ran.Load())
				waits.W.Close()
			})
		})
	}
}
