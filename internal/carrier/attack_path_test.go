package carrier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// marked is a rig that accepts Pongs.
func marked(t *testing.T, change func(*carrier.Config)) *rig {
	r := newRig(t, change)
	r.up.receive = func(_ message.Type, f []byte) error {
		if m, err := message.ParseControl(f); err == nil {
			if pong, ok := m.(message.Pong); ok {
				r.Pong(pong.N)
			}
		}
		return nil
	}
	return r.run()
}

// result puts a result of 4 KiB.
func (r *rig) result(id uint64) {
	f := outbox.AcceptedFlow(0, id)
	require.NoError(r.t, r.Put(&f, &outbox.Message{Type: message.CloseType, Payload: make([]byte, 4<<10)}, carrier.Now))
}

// wrote returns the numbers of the written Pings, and the number of other frames.
func (r *rig) wrote() (pings []uint64, others int) {
	synctest.Wait()
	for {
		select {
		case w := <-r.wire.writes:
			for _, f := range w {
				if m, err := message.ParseControl(f); err == nil {
					if ping, ok := m.(message.Ping); ok {
						pings = append(pings, ping.N)
						continue
					}
				}
				others++
			}
		default:
			return pings, others
		}
	}
}

// TestAttack_PongAnswersEarlierMarks stalls a path until the silence causes a Ping. Then all sent
// frames arrive together, and the peer answers only the newest Ping.
func TestAttack_PongAnswersEarlierMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := marked(t, pinging)
		r.knowsPath()
		for id := uint64(20_001); r.Path().InFlight < r.Path().Limit; id += 2 {
			r.result(id)
			synctest.Wait()
		}
		marks, _ := r.wrote()
		require.NotEmpty(t, marks)
		require.False(t, r.Path().Full, "nothing waits")
		fakeclock.Sleep(9 * time.Second)
		ping, _ := r.wrote()
		require.Len(t, ping, 1)
		r.wire.says(message.Pong{N: ping[0]})
		synctest.Wait()
		r.result(30_001)
		_, sent := r.wrote()
		require.Equal(t, 1, sent)
	})
}

// TestAttack_NoPongs answers the first marks, and then none. A side that waited for the marks would
// keep messages back for much longer than the write timeout.
func TestAttack_NoPongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := marked(t, nil)
		r.knowsPath()
		const results = 900
		for id := range uint64(results) {
			r.result(20_001 + 2*id)
		}
		_, sent := r.wrote()
		require.True(t, r.Path().Full)
		fakeclock.Sleep(time.Minute / 2)
		_, some := r.wrote()
		require.Less(t, sent+some, results/2, "a little leaves all the same")
		fakeclock.Sleep(time.Minute / 2)
		_, rest := r.wrote()
		require.Equal(t, results, sent+some+rest)
	})
}

// knowsPath sends until marks have returned, each after a millisecond.
func (r *rig) knowsPath() {
	for id := uint64(1); id < 200; id += 2 {
		r.result(id)
		fakeclock.Sleep(time.Millisecond)
		if pings, _ := r.wrote(); len(pings) > 0 {
			fakeclock.Sleep(time.Millisecond)
			r.wire.says(message.Pong{N: pings[len(pings)-1]})
			synctest.Wait()
		}
	}
}
