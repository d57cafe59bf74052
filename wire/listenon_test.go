package wire_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// fakeListener is a net.Listener that accepts conn and has a fixed address.
type fakeListener struct {
	conn    net.Conn
	address string
}

func (l fakeListener) Accept() (net.Conn, error) { return l.conn, nil }
func (l fakeListener) Close() error              { return nil }

func (l fakeListener) Addr() net.Addr {
	if l.address == "nil" {
		return nil
	}
	return transport.Addr("fake", "somewhere")
}

// ListenOn makes wires of the connections of a net.Listener.
func TestListenOn(t *testing.T) {
	server, client := tlsOptions(t)
	path := socket(t)
	at := "unix://" + strings.ReplaceAll(path, " ", "%20")
	for _, test := range []struct {
		name, network, address string
		server, client         wire.Options
		url                    string
		private                bool
	}{
		{"tcp", "tcp", "127.0.0.1:0", wire.Options{}, wire.Options{}, "tcp://127.0.0.1:", true},
		{"tcp, everywhere", "tcp", ":0", wire.Options{}, wire.Options{}, "tcp://[::]:", false},
		{"tls", "tcp", "127.0.0.1:0", server, client, "tls://127.0.0.1:", true},
		{"unix", "unix", path, wire.Options{}, wire.Options{}, at, true},
		{"unix, which has no TLS", "unix", path, server, client, at, true},
		{"options that come too late", "tcp", "127.0.0.1:0", wire.Options{ReusePort: true}, wire.Options{ReusePort: true}, "tcp://127.0.0.1:", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			below, err := net.Listen(test.network, test.address)
			require.NoError(t, err)
			ln, err := wire.ListenOn(below, test.server)
			require.NoError(t, err)
			defer ln.Close()
			require.True(t, strings.HasPrefix(ln.URL(), test.url), ln.URL())
			require.Equal(t, test.private, ln.(wire.Private).Private())
			a, b := connect(t, ln, test.client)
			require.NoError(t, b.WriteFrames([][]byte{[]byte("hello")}))
			frame, err := a.ReadFrame(5)
			require.NoError(t, err)
			require.Equal(t, "hello", string(frame))
			require.NoError(t, ln.Close())
			require.NoError(t, ln.Close())
			_, err = ln.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = below.Accept()
			require.ErrorIs(t, err, net.ErrClosed, "it belongs to the Listener")
		})
	}
	require.NoFileExists(t, path, "as net.Listen has it")
}

// An unusable net.Listener is an error.
func TestListenOn_Unusable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer plain.Close()
	server, _ := tlsOptions(t)
	noCertificate := wire.Options{TLS: server.TLS.Clone()}
	noCertificate.TLS.Certificates = nil
	for _, test := range []struct {
		name    string
		ln      net.Listener
		options wire.Options
		want    string
	}{
		{"nil", nil, wire.Options{}, "nil: look at the error"},
		{"nil *net.TCPListener", (*net.TCPListener)(nil), wire.Options{}, "nil: look at the error"},
		{"nil *net.UnixListener", (*net.UnixListener)(nil), wire.Options{}, "nil: look at the error"},
		{"empty", &net.TCPListener{}, wire.Options{}, "*net.TCPListener: invalid argument"},
		{"closed", closed, wire.Options{}, "it is closed"},
		{"without an address", fakeListener{address: "nil"}, wire.Options{}, "its Addr is nil"},
		{"no certificate", plain, noCertificate, "there is no certificate"},
		{"no certificate, of another network", fakeListener{}, noCertificate, "listen on somewhere: there is no certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := wire.ListenOn(test.ln, test.options)
			requireParts(t, err, []string{"wire: listen on", test.want})
		})
	}
	require.NoError(t, plain.Close(), "after an error it is still its owner's")
}

// A net.Listener of another network is served.
func TestListenOn_OtherNetwork(t *testing.T) {
	p, q := net.Pipe()
	defer q.Close()
	ln, err := wire.ListenOn(fakeListener{conn: p}, wire.Options{})
	require.NoError(t, err)
	require.Equal(t, "fake://somewhere", ln.URL())
	require.False(t, ln.(wire.Private).Private(), "the privacy is unknown")
	w, err := ln.Accept()
	require.NoError(t, err)
	require.NoError(t, w.Close())

	none, err := wire.ListenOn(fakeListener{}, wire.Options{})
	require.NoError(t, err)
	_, err = none.Accept()
	require.ErrorContains(t, err, "neither a connection nor an error")
}

func TestListenOn_URLOfAZone(t *testing.T) {
	server, _ := tlsOptions(t)
	ln := zoned{fakeListener{}}
	for want, o := range map[string]wire.Options{"tcp://[fe80::1%25eth0]:5330": {}, "tls://[fe80::1%25eth0]:5330": server} {
		l, err := wire.ListenOn(ln, o)
		require.NoError(t, err)
		require.Equal(t, want, l.URL())
		require.NoError(t, wire.CheckURL(l.URL()))
	}
}

// zoned listens at an IPv6 address with a zone.
type zoned struct{ fakeListener }

func (zoned) Addr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 5330, Zone: "eth0"}
}

// Two listeners share a port if both set ReusePort.
func TestReusePort_Two(t *testing.T) {
	server, client := tlsOptions(t)
	for _, test := range []struct {
		url            string
		server, client wire.Options
	}{
		{"tcp://127.0.0.1:0", wire.Options{ReusePort: true}, wire.Options{}},
		{"tls://127.0.0.1:0", wire.Options{ReusePort: true, TLS: server.TLS}, client},
	} {
		first, err := wire.Listen(t.Context(), test.url, test.server)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		require.NoError(t, err)
		defer first.Close()
		_, err = wire.Listen(t.Context(), first.URL(), wire.Options{TLS: server.TLS})
		require.Error(t, err, "without the report it is refused")
		second := listen(t, first.URL(), test.server)
		require.Equal(t, first.URL(), second.URL())
		require.NoError(t, first.Close())
		connect(t, second, test.client)
	}
}

// A transport without ports does not support ReusePort.
func TestReusePort_Unsupported(t *testing.T) {
	for _, url := range []string{"unix://" + strings.ReplaceAll(socket(t), " ", "%20"), "mem://shared"} {
		_, err := wire.Listen(t.Context(), url, wire.Options{ReusePort: true})
		requireParts(t, err, []string{"listen at " + url, "Options.ReusePort", "listen without it"})
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
}
