package nodes

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// A node listens beside another one if both set ReusePort.
func TestReusePort_TwoNodes(t *testing.T) {
	first, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{ReusePort: true})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer first.Close()

	alone := asterisque.NewNode()
	defer alone.Close()
	require.ErrorContains(t, alone.ListenAndServe(t.Context(), first.URL()), "listen at "+first.URL())

	beside := asterisque.NewNode(asterisque.WithReusePort())
	defer beside.Close()
	life, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- beside.ListenAndServe(life, first.URL()) }() // ends with life
	address := strings.TrimPrefix(first.URL(), "tcp://")
	require.NoError(t, first.Close())
	client := asterisque.NewNode()
	defer client.Close()
	require.Eventually(t, func() bool {
		_, err := client.Dial(t.Context(), "tcp://"+address)
		return err == nil
	}, testkit.Patience, time.Millisecond)
	end()
	require.NoError(t, <-served)
}

// panicking is a net.Listener of an application.
type panicking struct{ net.Listener }

func (panicking) Accept() (net.Conn, error) { panic("Accept") }

// A net.Listener that panics ends only Serve.
func TestServe_PanickingListener(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln, err := wire.ListenOn(panicking{below}, wire.Options{})
	require.NoError(t, err)
	n := asterisque.NewNode()
	defer n.Close()
	require.ErrorContains(t, n.Serve(t.Context(), ln), "the listener panicked")
	_, err = below.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
