//go:build !js

package wswire

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a connection that records the bytes written.
type recorder struct {
	net.Conn
	bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (r *recorder) Read(p []byte) (int, error)  { return r.Buffer.Read(p) }

// A control frame does not wait for the holder of the connection.
func TestConn_ControlFrame(t *testing.T) {
	r := new(recorder)
	c := &conn{Conn: r}
	write := func(s string) {
		n, err := c.Write([]byte(s))
		require.NoError(t, err)
		require.Equal(t, len(s), n)
	}
	write("pong 1, ")
	c.hold()
	p := []byte("pong 2, ")
	c.Write(p)
	clear(p) // it may be used again
	write("pong 3, ")
	r.WriteString("data, ")
	require.Equal(t, "pong 1, data, ", r.String(), "nothing comes between the bytes of the holder")
	c.letGo()
	write("pong 4")
	require.Equal(t, "pong 1, data, pong 3, pong 4", r.String(), "only the latest of those that waited")
}

// A large write is made in pieces, so that progress is visible.
func TestConn_LargeWrite(t *testing.T) {
	r := &sizes{}
	n, err := heldConn{&conn{Conn: r}}.Write(make([]byte, 2*piece+1))
	require.NoError(t, err)
	require.Equal(t, 2*piece+1, n)
	require.Equal(t, []int{piece, piece, 1}, r.list)
}

// sizes is a connection that records the sizes of its writes.
type sizes struct {
	net.Conn
	list []int
}

func (s *sizes) Write(p []byte) (int, error) {
	s.list = append(s.list, len(p))
	return len(p), nil
}

// endsTogether returns io.EOF together with the last bytes.
type endsTogether struct {
	net.Conn
	all []byte
}

func (e *endsTogether) Read(p []byte) (int, error) {
	n := copy(p, e.all)
	e.all = e.all[n:]
	return n, io.EOF
}

// The end of a connection counts only if more was expected.
func TestConn_EndIfMoreWanted(t *testing.T) {
	c := &conn{Conn: &endsTogether{all: []byte("hello")}}
	p := make([]byte, 10)
	n, err := c.Read(p)
	require.NoError(t, err)
	require.Equal(t, "hello", string(p[:n]))
	require.False(t, c.ended)
	_, err = c.Read(p)
	require.Equal(t, io.EOF, err)
	require.True(t, c.ended)
}

// The mask is that of RFC 6455.
func TestMask_RFC(t *testing.T) {
	// RFC 6455, section 5.7: "A single-frame masked text message (contains "Hello")"
	p := []byte("Hello")
	mask(p, 0x3d21fa37)
	require.Equal(t, []byte{0x7f, 0x9f, 0x4d, 0x51, 0x58}, p)

	for size := range 100 {
		key := [4]byte{1, 2, 3, 4}
		got, want := make([]byte, size), make([]byte, size)
		for i := range got {
			got[i] = byte(rand.Uint32())
			want[i] = got[i] ^ key[i%4]
		}
		mask(got, 0x04030201)
		require.Equal(t, want, got)
	}
}

// Headers are those of RFC 6455.
func TestHeader_RFC(t *testing.T) {
	for _, test := range []struct {
		size int
		want []byte
	}{
		{0, []byte{0x82, 0}},
		{125, []byte{0x82, 125}},
		{126, []byte{0x82, 126, 0, 126}},
		{65535, []byte{0x82, 126, 255, 255}},
		{65536, []byte{0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0}},
	} {
		b, _ := appendHeader(nil, opBinary, test.size, false)
		require.Equal(t, test.want, b)
		b, key := appendHeader(nil, opBinary, test.size, true)
		test.want[1] |= 0x80
		n := len(b) - 4
		require.Equal(t, test.want, b[:n])
		require.Equal(t, key, uint32(b[n])|uint32(b[n+1])<<8|uint32(b[n+2])<<16|uint32(b[n+3])<<24)
		require.LessOrEqual(t, len(b), maxHeader)
	}
}

// Small messages share a write.
func TestEncoder_SharedWrite(t *testing.T) {
	for _, client := range []bool{false, true} {
		w := new(counter)
		e := encoder{w: w, client: client, out: new([chunk]byte)}
		for range 100 {
			require.NoError(t, e.message(make([]byte, 100)))
		}
		require.Zero(t, w.writes)
		require.NoError(t, e.flush())
		require.Equal(t, 1, w.writes)
		require.NoError(t, e.flush())
		require.Equal(t, 1, w.writes, "there was nothing more")
	}
}

// Encoded messages are read unchanged.
func TestEncoder_RoundTrip(t *testing.T) {
	for _, client := range []bool{false, true} {
		var out bytes.Buffer
		var want [][]byte
		e := encoder{w: &out, client: client, out: new([chunk]byte)}
		for i := range 500 { // so that messages end, and begin, everywhere at the end of the buffer
			size := i * 7 % 300
			if i%50 == 0 {
				size = i * 300
			}
			p := make([]byte, size)
			for j := range p {
				p[j] = byte(rand.Uint32())
			}
			want = append(want, bytes.Clone(p))
			require.NoError(t, e.message(p))
			require.Equal(t, want[i], p, "the message is not changed")
			clear(p) // nor kept
		}
		require.NoError(t, e.flush())
		for _, w := range want {
			head, _ := appendHeader(nil, opBinary, len(w), client)
			got := out.Next(len(head))
			require.Equal(t, head[:len(head)-4*btoi(client)], got[:len(got)-4*btoi(client)])
			payload := out.Next(len(w))
			if client {
				for i := range payload {
					payload[i] ^= got[len(got)-4+i%4]
				}
			}
			require.True(t, bytes.Equal(w, payload))
		}
		require.Zero(t, out.Len())
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// counter counts writes.
type counter struct{ writes int }

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	return len(p), nil
}
