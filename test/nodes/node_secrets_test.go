package nodes

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// talkative is a Transport and a Listener that repeat all their arguments in errors.
type talkative struct {
	raw   string // of a Listener
	err   error  // of Accept
	calls int
}

func (*talkative) Dial(_ context.Context, u *url.URL, _ wire.Options) (wire.Wire, error) {
	return nil, &url.Error{Op: "Get", URL: u.String(), Err: errors.New(u.RawQuery)}
}

func (*talkative) Listen(_ context.Context, u *url.URL, _ wire.Options) (wire.Listener, error) {
	if u.Hostname() == "nowhere" {
		return nil, fmt.Errorf("cannot listen at %s", u)
	}
	return &talkative{raw: u.String(), err: syscall.EMFILE}, nil
}

func (l *talkative) Accept() (wire.Wire, error) {
	if l.calls++; l.calls > 1 {
		l.err = errors.New("broken")
	}
	return nil, fmt.Errorf("accept at %s: %w", l.raw, l.err)
}

func (*talkative) Close() error  { return nil }
func (l *talkative) URL() string { return l.raw }

// requireNoSecret requires that no way to print an error shows the secret.
func requireNoSecret(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v %+v %q", e, e, e)
		require.NotContains(t, text, "s3cret")
		require.NotContains(t, text, "t0ken")
	}
}

// No secret of a URL is logged, or in an error.
func TestSecrets_OfURL(t *testing.T) {
	scheme := "x-" + strings.ToLower(rand.Text()) // the registry outlives the test
	require.NoError(t, wire.Register(scheme, &talkative{}))
	for _, rest := range []string{"://me:s3cret@nowhere/?t=t0ken", ":me:s3cret@nowhere?t0ken", "://t0ken:s3cret@nowhere:port/"} {
		synctest.Test(t, func(t *testing.T) {
			raw := scheme + rest
			var log bytes.Buffer
			node := asterisque.NewNode(asterisque.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			_, err := node.Dial(t.Context(), raw)
			requireNoSecret(t, err)
			requireNoSecret(t, node.ListenAndServe(t.Context(), raw))

			how := asterisque.ReconnectConfig{MaxOutage: time.Minute, OnState: func(_ *asterisque.Connection, _ asterisque.ConnectionState, err error) { requireNoSecret(t, err) }}
			_, err = node.Connect(t.Context(), raw, how)
			requireNoSecret(t, err)
			how.Dial = func(context.Context) (wire.Wire, error) { return nil, fmt.Errorf("dial %s failed", raw) }
			_, err = node.Connect(t.Context(), raw, how)
			requireNoSecret(t, err)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)

			require.NoError(t, node.Close())
			require.Contains(t, log.String(), "connecting failed")
			require.Contains(t, log.String(), "nowhere", "what is no secret")
			require.NotContains(t, log.String(), "s3cret")
			require.NotContains(t, log.String(), "t0ken")
		})
	}
}

// No secret of a URL is in the log lines and errors of Serve.
func TestSecrets_OfServe(t *testing.T) {
	scheme := "x-" + strings.ToLower(rand.Text())
	require.NoError(t, wire.Register(scheme, &talkative{}))
	raw := scheme + "://me:s3cret@here/?t=t0ken"
	for name, serve := range map[string]func(*asterisque.Node) error{
		"ListenAndServe": func(n *asterisque.Node) error { return n.ListenAndServe(t.Context(), raw) },
		"Serve":          func(n *asterisque.Node) error { return n.Serve(t.Context(), &talkative{raw: raw, err: syscall.EMFILE}) },
	} {
		var log bytes.Buffer
		node := asterisque.NewNode(asterisque.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		err := serve(node)
		requireNoSecret(t, err)
		require.ErrorContains(t, err, "accept at "+scheme+"://here/?…: broken", name)
		require.Equal(t, 1, strings.Count(log.String(), "accepting failed"))
		require.NotContains(t, log.String(), "s3cret")
		require.NotContains(t, log.String(), "t0ken")
		require.NoError(t, node.Close())
	}
}
