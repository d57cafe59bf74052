package smuxwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// log keeps the events that it receives.
type log []string

func (l *log) opened(id uint32) error { *l = append(*l, fmt.Sprint("opened ", id)); return nil }
func (l *log) closed(id uint32)       { *l = append(*l, fmt.Sprint("closed ", id)) }
func (l *log) arriving(id uint32)     { *l = append(*l, fmt.Sprint("arriving ", id)) }
func (l *log) data(id uint32, bytes int) error {
	*l = append(*l, fmt.Sprint("data ", id, " ", bytes))
	return nil
}
func (l *log) granted(id, limit uint32) { *l = append(*l, fmt.Sprint("granted ", id, " ", limit)) }

// frames returns frames as they are sent: version, command, stream and payload.
func frames(version byte, list ...any) []byte {
	var b []byte
	for i := 0; i < len(list); i += 3 {
		payload := list[i+2].(string)
		b = append(b, version, byte(list[i].(int)))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(payload)))
		b = binary.LittleEndian.AppendUint32(b, uint32(list[i+1].(int)))
		b = append(b, payload...)
	}
	return b
}

// Frames are found at any split of the reads.
func TestConn_AnySplit(t *testing.T) {
	all := frames(2, 0, 3, "", 2, 3, "hello", 4, 3, "12345678", 2, 1<<20, string(make([]byte, 5000)), 1, 3, "", 3, 0, "")
	want := log{"opened 3", "arriving 3", "data 3 5", "arriving 3", "arriving 1048576", "data 1048576 5000", "closed 3", "arriving 3", "arriving 0"}
	for _, size := range []int{1, 2, 3, 7, 8, 9, 100, 1 << 20} {
		var got log
		c := newConn(half{Reader: bytes.NewReader(all)}, 2, &got)
		var out bytes.Buffer
		n, err := io.CopyBuffer(struct{ io.Writer }{&out}, struct{ io.Reader }{c}, make([]byte, size))
		require.NoError(t, err)
		require.EqualValues(t, len(all), n)
		require.Equal(t, all, out.Bytes())
		require.Equal(t, want, got, "reads of %d bytes", size)
	}
	var got log
	_, err := io.Copy(io.Discard, newConn(half{Reader: iotest.OneByteReader(bytes.NewReader(all))}, 2, &got))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// half is a connection whose Read and Write are separate.
type half struct {
	io.Reader
	io.WriteCloser
}

func FuzzStrangers(f *testing.F) {
	f.Add(frames(2, 0, 3, "", 2, 3, "hello", 1, 3, ""))
	f.Add(frames(1, 0, 3, ""))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, sent []byte) {
		p, q := net.Pipe()
		m, err := Server(q, WithWires(2))
		require.NoError(t, err)
		go io.Copy(io.Discard, p) // ends with p
		p.SetWriteDeadline(time.Now().Add(10 * time.Second))
		p.Write(sent)
		p.Close()
		for { // every Wire ends, regardless of the frames sent
			w, err := m.Accept()
			if err != nil {
				break
			}
			for err == nil {
				_, err = w.ReadFrame(100)
			}
			require.NoError(t, w.Close())
		}
		require.Error(t, m.Err())
		require.NoError(t, m.Close())
	})
}

// halfCloser is a connection with CloseWrite.
type halfCloser struct {
	net.Conn
	ended, closed chan struct{}
}

func (h *halfCloser) CloseWrite() error { close(h.ended); return nil }
func (h *halfCloser) Close() error      { close(h.closed); return h.Conn.Close() }

// A closed connection is read until the peer has closed.
func TestConn_CloseReadsRest(t *testing.T) {
	for _, closes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p, q := net.Pipe()
			h := &halfCloser{Conn: p, ended: make(chan struct{}), closed: make(chan struct{})}
			c := newConn(h, 2, new(log))
			read := make(chan struct{})
			go func() { // ends with h
				io.Copy(io.Discard, c)
				close(read)
			}()
			before := time.Now()
			require.NoError(t, c.Close())
			require.NoError(t, c.Close(), "repeated")
			<-h.ended
			_, err := q.Write(frames(2, 3, 0, ""))
			require.NoError(t, err, "what is on the way is still taken")
			if closes {
				q.Close()
			}
			<-h.closed
			<-read
			require.Equal(t, closes, time.Since(before) < farewell, "it waits for the peer, but not for ever")
			q.Close()
			fakeclock.Sleep(farewell) // so that the timer has gone
		})
	}
}
