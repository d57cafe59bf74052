package quicwire

import (
	"crypto/tls"
	"flag"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// waits is the number of parallel tests that run at once. Only tests that mostly wait are parallel.
const waits = 4

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		p.Value.Set(strconv.Itoa(waits))
	}
	leak.Main(m)
}

// hangs is the time after which a test fails that waits for an event. It is longer than any slow
// machine needs.
const hangs = 2 * time.Minute

// listenFor listens on loopback until t ends.
func listenFor(t testing.TB, server *tls.Config) wire.Listener {
	t.Helper()
	l, err := wire.Listen(t.Context(), "quic://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	l.(transport.Guarded).Guard(nil) // before there is an Accept
	return l
}

// address returns the address that Dial expects, for a listener's URL.
func address(l wire.Listener) string { return strings.TrimPrefix(l.URL(), "quic://") }

// dialFor connects to a listener until t ends.
func dialFor(t testing.TB, address string, client *tls.Config) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), address, client)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// openOn opens a Wire on c and returns both ends, which are closed when t ends.
func openOn(t testing.TB, c *Conn, l wire.Listener) (here, there wire.Wire) {
	t.Helper()
	here, err := c.Open()
	require.NoError(t, err)
	return here, acceptFrom(t, here, l)
}

// connect dials l and returns both ends, which are closed when t ends.
func connect(t testing.TB, l wire.Listener, client *tls.Config) (here, there wire.Wire) {
	t.Helper()
	here, err := wire.Dial(t.Context(), l.URL(), wire.Options{TLS: client})
	require.NoError(t, err)
	return here, acceptFrom(t, here, l)
}

// acceptFrom returns the other end of here. It sends a frame first, because a listener learns of a
// Wire by its first frame.
func acceptFrom(t testing.TB, here wire.Wire, l wire.Listener) (there wire.Wire) {
	t.Helper()
	t.Cleanup(func() { here.Close() })
	require.NoError(t, here.WriteFrames([][]byte{{}}))
	there, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { there.Close() })
	_, err = there.ReadFrame(0)
	require.NoError(t, err)
	return there
}

// deadliner is a Wire with the deadlines of a net.Conn.
type deadliner interface {
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}
