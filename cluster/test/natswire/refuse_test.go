package natswire_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// A dial to a name without a listener fails at once.
func TestDial_NoListener(t *testing.T) {
	s := broker(t)
	_, err := wire.Dial(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.ErrorIs(t, err, natswire.ErrNobody)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	_, err = natswire.Dial(t.Context(), connectTo(t, s), "name", nil)
	require.ErrorIs(t, err, natswire.ErrNobody)
}

// A closed listener is like none.
func TestDial_ClosedListener(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	here, there := pairAt(t, ln, wire.Options{})
	require.NoError(t, ln.Close())
	_, err := ln.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	carries(t, here, there, "accepted wires continue")
	require.Eventually(t, func() bool {
		_, err = wire.Dial(t.Context(), ln.URL(), wire.Options{})
		return errors.Is(err, natswire.ErrNobody)
	}, hangs, time.Millisecond, "once the server has heard of it")
}

// Wires that are not accepted yet end with the listener.
func TestListener_UnacceptedWires(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	here, err := wire.Dial(t.Context(), ln.URL(), wire.Options{})
	require.NoError(t, err)
	defer here.Close()
	require.NoError(t, ln.Close())
	require.Error(t, readError(here))
}

// A listener with a full queue refuses.
func TestListener_FullQueue(t *testing.T) {
	s := broker(t)
	listenAt(t, s.ClientURL()+"/name", wire.Options{})
	nc := connectTo(t, s)
	for range backlog {
		w, err := natswire.Dial(t.Context(), nc, "name", nil)
		require.NoError(t, err)
		defer w.Close()
	}
	_, err := natswire.Dial(t.Context(), nc, "name", nil)
	require.ErrorIs(t, err, natswire.ErrRefused)
	require.ErrorContains(t, err, "128 wires wait")
}

// closedDoor admits no Wire.
type closedDoor struct{}

// Enter implements transport.Door.
func (closedDoor) Enter(net.Addr, func()) (transport.Place, error) {
	return nil, errors.New("the house is full")
}

// The refusal of a Door is the error of the dial.
func TestDoor_Refuses(t *testing.T) {
	s := broker(t)
	ln, err := wire.Listen(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	ln.(transport.Guarded).Guard(closedDoor{})
	_, err = wire.Dial(t.Context(), ln.URL(), wire.Options{})
	require.ErrorIs(t, err, natswire.ErrRefused)
	require.ErrorContains(t, err, "the house is full")
}

// Ends that disagree about TLS get an error.
func TestTLS_Disagreement(t *testing.T) {
	s := broker(t)
	serverTLS, clientTLS := testtls.Configs(t)
	listenAt(t, s.ClientURL()+"/plain", wire.Options{})
	listenAt(t, secretURL(s)+"/secret", wire.Options{TLS: serverTLS})
	_, err := wire.Dial(t.Context(), secretURL(s)+"/plain", wire.Options{TLS: clientTLS})
	require.ErrorIs(t, err, natswire.ErrRefused)
	require.ErrorContains(t, err, "dial without")
	_, err = wire.Dial(t.Context(), s.ClientURL()+"/secret", wire.Options{})
	require.ErrorIs(t, err, natswire.ErrRefused)
	require.ErrorContains(t, err, "nats+tls")
}

// The error for a max_payload that is too small has a remedy.
func TestDial_SmallPayload(t *testing.T) {
	s := broker(t, func(o *server.Options) { o.MaxPayload = leastPayload - 1 })
	_, dialled := wire.Dial(t.Context(), s.ClientURL()+"/name", wire.Options{})
	_, listened := wire.Listen(t.Context(), s.ClientURL()+"/name", wire.Options{})
	for _, err := range []error{dialled, listened} {
		var payload *natswire.PayloadError
		require.ErrorAs(t, err, &payload)
		require.Equal(t, natswire.PayloadError{Limit: leastPayload - 1, Need: leastPayload}, *payload)
		require.ErrorContains(t, err, "max_payload of the NATS server is 511 bytes")
		require.ErrorContains(t, err, "raise max_payload")
	}
}

// users configures the users of a server, each with permissions.
func users(all ...*server.User) func(o *server.Options) {
	return func(o *server.Options) { o.Users = all }
}

// Missing permissions are an error.
func TestDial_Permissions(t *testing.T) {
	all := &server.SubjectPermission{Allow: []string{">"}}
	but := func(subject string) *server.SubjectPermission {
		return &server.SubjectPermission{Allow: []string{">"}, Deny: []string{subject}}
	}
	may := func(name string, publish, subscribe *server.SubjectPermission) *server.User {
		return &server.User{Username: name, Password: "secret", Permissions: &server.Permissions{Publish: publish, Subscribe: subscribe}}
	}
	s := broker(t, users(
		may("anybody", all, all),
		may("no-asking", but(meeting+">"), all),
		may("no-inbox", all, but("_INBOX.>")),
		may("no-listening", all, but(meeting+">")),
		may("no-answering", but("_INBOX.>"), all),
	))
	url := func(user string) string {
		return strings.Replace(s.ClientURL(), "//", "//"+user+":secret@", 1) + "/name"
	}
	_, err := wire.Listen(t.Context(), url("no-listening"), wire.Options{})
	require.ErrorIs(t, err, nats.ErrPermissionViolation)
	require.ErrorContains(t, err, `Subscription to "asterisque.wire.name"`)

	listenAt(t, url("anybody"), wire.Options{})
	for _, user := range []string{"no-asking", "no-inbox"} {
		_, err := wire.Dial(t.Context(), url(user), wire.Options{})
		require.ErrorIs(t, err, nats.ErrPermissionViolation, user)
	}

	// A listener without the permission to answer is the same as no listener.
	mute := strings.Replace(url("no-answering"), "/name", "/mute", 1)
	listenAt(t, mute, wire.Options{})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("waited in vain"))
	defer cancel()
	_, err = wire.Dial(ctx, strings.Replace(url("anybody"), "/name", "/mute", 1), wire.Options{})
	require.ErrorContains(t, err, "waited in vain")
}

// Wrong credentials are an error.
func TestDial_WrongCredentials(t *testing.T) {
	s := broker(t, users(&server.User{Username: "me", Password: "right"}))
	url := func(user string) string {
		return strings.Replace(s.ClientURL(), "//", "//"+user, 1) + "/name"
	}
	listenAt(t, url("me:right@"), wire.Options{})
	for _, user := range []string{"", "me:wrong@", "you:right@", "token@"} {
		_, dialled := wire.Dial(t.Context(), url(user), wire.Options{})
		_, listened := wire.Listen(t.Context(), url(user), wire.Options{})
		for _, err := range []error{dialled, listened} {
			require.ErrorIs(t, err, nats.ErrAuthorization, user)
			require.ErrorContains(t, err, "does not accept the credentials", user)
		}
	}
	_, err := natswire.Transport{Options: []nats.Option{nats.UserCredentials(filepath.Join(t.TempDir(), "missing.creds"))}}.Listen(t.Context(), parsed(t, s.ClientURL()+"/name"), wire.Options{})
	require.ErrorContains(t, err, "missing.creds")
}

// A missing NATS server is an error.
func TestDial_NoServer(t *testing.T) {
	s := broker(t)
	url := s.ClientURL() + "/name"
	stop(s)
	_, err := wire.Dial(t.Context(), url, wire.Options{})
	require.ErrorIs(t, err, nats.ErrNoServers)
	_, err = wire.Listen(t.Context(), url, wire.Options{})
	require.ErrorIs(t, err, nats.ErrNoServers)
}

// A cancelled dial returns at once.
func TestDial_Canceled(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a server that never answers as NATS does
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("changed my mind"))
	_, err = wire.Dial(ctx, "nats://"+silent.Addr().String()+"/name", wire.Options{})
	require.ErrorContains(t, err, "changed my mind")
}
