package smuxwire_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
	"github.com/stretchr/testify/require"
	"github.com/xtaci/smux"
)

// A peer of another version is detected quickly.
func TestStrangers_OtherVersion(t *testing.T) {
	one := smux.DefaultConfig() // version 1
	t.Run("that dials", func(t *testing.T) {
		l := listen(t, "smux://127.0.0.1:0", wire.Options{})
		c, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "smux://"))
		require.NoError(t, err)
		peer, err := smux.Client(c, one)
		require.NoError(t, err)
		defer peer.Close()
		st, opened := peer.OpenStream() // fails if the answer is quicker
		w, err := l.Accept()
		require.NoError(t, err)
		_, err = w.ReadFrame(100)
		require.ErrorContains(t, err, "the peer speaks version 1 of smux, and this side version 2")
		require.ErrorContains(t, err, "smux.Config.Version")
		require.Error(t, w.WriteFrames([][]byte{nil}))
		require.NotNil(t, w.RemoteAddr())
		require.NoError(t, w.Close())
		if opened == nil {
			_, opened = st.Read(make([]byte, 1))
		}
		require.Error(t, opened, "the peer need not wait either")
	})
	t.Run("that listens, and gives up", func(t *testing.T) {
		dialTo(t, func(c net.Conn) {
			peer, err := smux.Server(c, one)
			if err == nil {
				peer.AcceptStream() // fails
				peer.Close()
			}
		}, "without a word; does it speak version 2 of smux?")
	})
	t.Run("that listens, and speaks", func(t *testing.T) {
		dialTo(t, func(c net.Conn) {
			defer c.Close()
			c.Write([]byte{1, 3, 0, 0, 0, 0, 0, 0})
			io.Copy(io.Discard, c)
		}, "the peer speaks version 1 of smux, and this side version 2")
	})
}

// dialTo dials a peer that does not use smux, and requires an error with these parts.
func dialTo(t *testing.T, peer func(net.Conn), parts ...string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	done := make(chan struct{})
	go func() { // ends with the connection
		defer close(done)
		if c, err := l.Accept(); err == nil {
			peer(c)
		}
	}()
	w, err := wire.Dial(t.Context(), "smux://"+l.Addr().String(), wire.Options{})
	if err == nil { // the peer was not quicker
		_, err = w.ReadFrame(100)
		w.Close()
	}
	for _, p := range parts {
		require.ErrorContains(t, err, p)
	}
	<-done
}

// A peer without smux is detected quickly.
func TestStrangers_NotSmux(t *testing.T) {
	t.Run("a tcp Wire that listens", func(t *testing.T) {
		l := listen(t, "tcp://127.0.0.1:0", wire.Options{})
		there := make(chan error)
		go func() { // ends with the Wire
			w, err := l.Accept()
			if err == nil {
				defer w.Close()
				if _, err = w.ReadFrame(1000); err != nil {
					w.WriteFrames([][]byte{[]byte("what was that?")})
				}
			}
			there <- err
		}()
		w, err := wire.Dial(t.Context(), "smux"+strings.TrimPrefix(l.URL(), "tcp"), wire.Options{})
		if err == nil { // the peer was not quicker
			_, err = w.ReadFrame(100)
			require.NoError(t, w.Close())
		}
		require.ErrorContains(t, err, "does not speak smux")
		require.ErrorContains(t, err, `is it a "tcp" or "tls" Wire`)
		require.ErrorIs(t, <-there, wire.ErrFrameTooLarge)
	})
	for name, sent := range map[string]string{"a tcp Wire that dials": "\x00\x00\x00\x05hello", "a browser": "GET / HTTP/1.1\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, "smux://127.0.0.1:0", wire.Options{})
			c, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "smux://"))
			require.NoError(t, err)
			defer c.Close()
			_, err = io.WriteString(c, sent)
			require.NoError(t, err)
			w, err := l.Accept()
			require.NoError(t, err)
			defer w.Close()
			_, err = w.ReadFrame(100)
			require.ErrorContains(t, err, "does not speak smux")
			require.ErrorContains(t, err, fmt.Sprintf("%q", sent[:min(len(sent), 8)])[:5])
			_, err = c.Read(make([]byte, 1))
			require.Error(t, err, "the connection is closed")
		})
	}
	t.Run("two that dial", func(t *testing.T) {
		c, s := tcpPair(t)
		a, err := smuxwire.Client(c)
		require.NoError(t, err)
		defer a.Close()
		b, err := smuxwire.Client(s)
		require.NoError(t, err)
		defer b.Close()
		a.Open(t.Context()) // may learn already that it failed
		<-b.Done()
		require.ErrorContains(t, b.Err(), "is one of the two a Client, and the other a Server?")
		<-a.Done()
	})
	t.Run("frames that smux does not know", func(t *testing.T) {
		c, s := tcpPair(t)
		m, err := smuxwire.Server(s)
		require.NoError(t, err)
		defer m.Close()
		_, err = c.Write([]byte{2, 77, 0, 0, 0, 0, 0, 0})
		require.NoError(t, err)
		<-m.Done()
		require.ErrorContains(t, m.Err(), "the peer broke the protocol of smux")
	})
	t.Run("nobody", func(t *testing.T) {
		c, s := tcpPair(t)
		m, err := smuxwire.Server(s)
		require.NoError(t, err)
		defer m.Close()
		require.NoError(t, c.Close())
		_, err = m.Accept()
		require.True(t, errors.Is(err, io.ErrUnexpectedEOF))
	})
}
