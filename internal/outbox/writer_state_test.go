package outbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
)

var writerStateNames = []string{"asleep", "announced", "shut", "awake", "awakeEarly", "parked", "ending", "ended"}

func TestWriterState_Transitions(t *testing.T) {
	// the next state, by event; "-" has no effect
	table := []struct {
		from writerState
		next string
	}{
		//           wake announce come dry shuts opens halt resume end
		{asleep, "awake announced - - - - parked - ending"},
		{announced, "awakeEarly - asleep - - - parked - ending"},
		{shut, "awake - - - - awake parked - ending"},
		{awake, "- - - asleep shut - parked - ending"},
		{awakeEarly, "- - awake announced shut - parked - ending"},
		{parked, "- - - - - - - awake ended"},
		{ending, "- - - - - - ended - -"},
		{ended, "- - - - - - - - -"},
	}
	require.Len(t, table, int(writerStates))
	require.Len(t, writerStateNames, int(writerStates))
	for _, c := range table {
		var got []string
		for e := range writerEvents {
			name := "-"
			next, ok := c.from.next(e)
			if ok {
				name = writerStateNames[next]
			} else {
				require.Equal(t, c.from, next)
			}
			got = append(got, name)
		}
		require.Equal(t, c.next, strings.Join(got, " "), writerStateNames[c.from])
	}
}

func TestWriterState_Invariants(t *testing.T) {
	for from := range writerStates {
		for e := range writerEvents {
			next, ok := from.next(e)
			what := fmt.Sprintf("%s, event %d", writerStateNames[from], e)
			require.False(t, from.present() && !next.present() && e != dry && e != shuts, "%s: the writer alone says that it writes no more", what)
			require.False(t, from.closed() && !next.closed(), "%s: a closed state stays closed", what)
			require.False(t, from.halted() && !next.halted() && e != resume, "%s: only another Wire ends a halt", what)
			if e == wake {
				require.Equal(t, !from.present(), ok, "%s: one becomes the writer where there is none", what)
			}
		}
		require.False(t, (from.halted() || from.closed()) && !from.present(), "%s: no caller can become the writer", writerStateNames[from])
	}
}

func TestWriter_OneOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, from := range []writerState{asleep, announced} {
			var w writer
			w.state.Store(uint32(from))
			var mu sync.Mutex
			became := 0
			for range 100 {
				go func() {
					if w.become() {
						mu.Lock()
						defer mu.Unlock()
						became++
					}
				}()
			}
			synctest.Wait()
			require.Equal(t, 1, became)
			require.True(t, w.current().present())
		}
	})
}

func TestWriter_AnnouncedComes(t *testing.T) {
	o := New(0, 1<<20, 0, 0, func(int, int) {}, nil)
	f := AcceptedFlow(0, 1)
	more := func() (write, later bool) {
		write, later, err := o.PutMore(&f, &Message{Type: message.BlockType, Payload: []byte("small")})
		require.NoError(t, err)
		return write, later
	}
	write, later := more()
	require.False(t, write)
	require.True(t, later)
	require.Equal(t, announced, o.writer.current())
	require.True(t, o.writer.become(), "as an Open that enters")
	require.Equal(t, awakeEarly, o.writer.current())
	batch, _ := o.Take()
	o.Written(batch)
	_, end := o.Take()
	require.Equal(t, Idle, end)
	write, later = more()
	require.False(t, write)
	require.False(t, later, "one is on the way already")
	require.True(t, o.Claim())
	require.Equal(t, awake, o.writer.current())
}
