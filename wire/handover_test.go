package wire_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// needHandover skips t on platforms without handover of sockets.
func needHandover(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows hands no sockets over")
	}
}

// A socket that is handed over loses no connection.
func TestHandover_NoneLost(t *testing.T) {
	needHandover(t)
	server, client := tlsOptions(t)
	path := "unix://" + strings.ReplaceAll(socket(t), " ", "%20")
	for _, test := range []struct {
		url            string
		server, client wire.Options
	}{
		{"tcp://127.0.0.1:0", wire.Options{}, wire.Options{}},
		{"tls://127.0.0.1:0", server, client},
		{path, wire.Options{}, wire.Options{}},
	} {
		t.Run(test.url, func(t *testing.T) {
			first := listen(t, test.url, test.server)
			f, err := wire.ListenerFile(first)
			require.NoError(t, err)
			require.NoError(t, first.Close())

			waiting := dialPlain(t, first.URL()) // a connection that is never accepted
			second, err := wire.ListenFile(f, test.server)
			require.NoError(t, err)
			require.Equal(t, first.URL(), second.URL())
			require.NoError(t, f.Close(), "the Listener has a duplicate")
			w, err := second.Accept()
			require.NoError(t, err)
			require.Equal(t, waiting.LocalAddr().String(), w.RemoteAddr().String())
			require.NoError(t, w.Close())

			a, b := connect(t, second, test.client)
			require.NoError(t, b.WriteFrames([][]byte{[]byte("hello")}))
			frame, err := a.ReadFrame(5)
			require.NoError(t, err)
			require.Equal(t, "hello", string(frame))
			require.NoError(t, second.Close())
			_, err = wire.Dial(t.Context(), first.URL(), test.client)
			require.Error(t, err, "the last one has closed it")
		})
	}
	_, err := net.Dial("unix", strings.ReplaceAll(strings.TrimPrefix(path, "unix://"), "%20", " "))
	require.ErrorContains(t, err, "refused", "the path stays, because another process may listen there")
}

// dialPlain connects without TLS.
func dialPlain(t *testing.T, url string) net.Conn {
	scheme, address, _ := strings.Cut(url, "://")
	network := "tcp"
	if scheme == "unix" {
		network, address = scheme, strings.ReplaceAll(address, "%20", " ")
	}
	c, err := net.Dial(network, address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// A file that is not a listening socket is an error.
func TestListenFile_Unusable(t *testing.T) {
	needHandover(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	conn := dialPlain(t, "tcp://"+ln.Addr().String())
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer packets.Close()
	local, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket(t), Net: "unixgram"})
	require.NoError(t, err)
	defer local.Close()
	plain, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer plain.Close()
	closed := fileOf(t, ln)
	require.NoError(t, closed.Close())
	server, _ := tlsOptions(t)
	noCertificate := wire.Options{TLS: server.TLS.Clone()}
	noCertificate.TLS.Certificates = nil

	for _, test := range []struct {
		name    string
		file    *os.File
		options wire.Options
		want    []string
		is      error
	}{
		{"nil", nil, wire.Options{}, []string{"nil file"}, nil},
		{"closed", closed, wire.Options{}, []string{"it is closed"}, os.ErrClosed},
		{"no socket", plain, wire.Options{}, []string{os.DevNull, "it is no socket"}, nil},
		{"connection", fileOf(t, conn), wire.Options{}, []string{"does not listen", "FromConn", "Accept=no"}, nil},
		{"UDP", fileOf(t, packets), wire.Options{}, []string{"packets", "ListenStream="}, nil},
		{"Unix datagrams", fileOf(t, local), wire.Options{}, []string{"packets"}, nil},
		{"no certificate", fileOf(t, ln), noCertificate, []string{"certificate", "Options.TLS"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := wire.ListenFile(test.file, test.options)
			requireParts(t, err, append(test.want, "wire: listen on"))
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
		})
	}
}

// fileOf returns the file of a socket until t ends.
func fileOf(t *testing.T, of any) *os.File {
	f, err := of.(interface{ File() (*os.File, error) }).File()
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// A listener without a socket is an error.
func TestListenerFile_NoSocket(t *testing.T) {
	_, err := wire.ListenerFile(nil)
	require.ErrorContains(t, err, "nil Listener")
	_, err = wire.ListenerFile(listen(t, "mem://nofile", wire.Options{}))
	requireParts(t, err, []string{"mem://nofile", "no socket"})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	own, err := wire.ListenOn(fakeListener{}, wire.Options{})
	require.NoError(t, err)
	_, err = wire.ListenerFile(own)
	require.ErrorIs(t, err, errors.ErrUnsupported)

	needHandover(t)
	for _, url := range []string{"tcp://127.0.0.1:0", "unix://" + strings.ReplaceAll(socket(t), " ", "%20")} {
		ln := listen(t, url, wire.Options{})
		require.NoError(t, ln.Close())
		_, err = wire.ListenerFile(ln)
		require.ErrorIs(t, err, net.ErrClosed)
		requireParts(t, err, []string{ln.URL()})
	}
}

// A concurrent Close and ListenerFile have one of two outcomes.
func TestHandover_WhileClosing(t *testing.T) {
	needHandover(t)
	path := socket(t)
	for range 50 {
		ln := listen(t, "unix://"+strings.ReplaceAll(path, " ", "%20"), wire.Options{})
		closed := make(chan error)
		go func() { closed <- ln.Close() }() // ends with Close
		f, err := wire.ListenerFile(ln)
		require.NoError(t, <-closed)
		if err != nil {
			require.ErrorIs(t, err, net.ErrClosed)
			require.NoFileExists(t, path)
			continue
		}
		require.FileExists(t, path)
		require.NoError(t, f.Close())
		require.NoError(t, os.Remove(path))
	}
}
