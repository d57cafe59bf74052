package wire_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// The unsent bytes in the kernel are bounded after much is sent.
func TestUnsent_Bounded(t *testing.T) {
	const notSentLowat = 25 // TCP_NOTSENT_LOWAT
	for name, write := range map[string]func(w wire.Wire, frame []byte) error{
		"frames":  func(w wire.Wire, frame []byte) error { return w.WriteFrames([][]byte{frame}) },
		"a batch": func(w wire.Wire, frame []byte) error { return w.(wire.BatchWriter).WriteBatch(stream(string(frame))) },
		"a batch that does not wait": func(w wire.Wire, frame []byte) error {
			_, err := w.(wire.TryWriter).TryWriteBatch(stream(string(frame)))
			return err
		},
		"pieces": func(w wire.Wire, frame []byte) error {
			return w.(wire.VectorWriter).WriteVector([][]byte{stream(string(frame))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			here, _ := tcpPair(t)
			raw, err := here.(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			bound := func() (n int) {
				raw.Control(func(fd uintptr) { n, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat) })
				require.NoError(t, err)
				return n
			}
			w, before := wire.FromConn(here), bound()
			require.NoError(t, write(w, make([]byte, 1<<10)))
			require.Equal(t, before, bound(), "not for a connection that carries little")
			require.NoError(t, write(w, make([]byte, 16<<10)))
			require.Equal(t, 32<<10, bound())
		})
	}
}
