package natswire_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

func parsed(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u
}

// Names that NATS forbids are refused.
func TestName_Refused(t *testing.T) {
	s := broker(t)
	nc := connectTo(t, s)
	for _, name := range []string{"", "*", "a.*", "a>", ">", ".", ".a", "a.", "a..b", "a b", "a\tb", "a\r\nPUB x 0", "a\u00a0b", "a\x00b", "a\u200bb", "a\xffb", strings.Repeat("a", maxName+1)} {
		_, dialled := natswire.Dial(t.Context(), nc, name, nil)
		_, listened := natswire.Listen(t.Context(), nc, name, nil)
		_, byURL := wire.Dial(t.Context(), s.ClientURL()+"/"+url.PathEscape(name), wire.Options{})
		for _, err := range []error{dialled, listened, byURL} {
			require.ErrorIs(t, err, wire.ErrURL, "%q", name)
		}
	}
}

// Names that NATS permits are accepted.
func TestName_Accepted(t *testing.T) {
	s := broker(t)
	for _, name := range []string{"a", "orders.eu", "a/b", "größe", "$", strings.Repeat("a", maxName)} {
		here, there := pairAt(t, listenAt(t, s.ClientURL()+"/"+name, wire.Options{}), wire.Options{})
		carries(t, here, there, name)
	}
}

// An unusable URL is an error that wraps wire.ErrURL.
func TestURL_Unusable(t *testing.T) {
	for _, raw := range []string{"nats:orders", "nats:///orders", "nats://host", "nats://host/", "nats://host/orders?x=1", "nats://host/orders#x", "nats+tls://host"} {
		_, dialled := wire.Dial(t.Context(), raw, wire.Options{})
		_, listened := wire.Listen(t.Context(), raw, wire.Options{})
		for _, err := range []error{dialled, listened} {
			require.ErrorIs(t, err, wire.ErrURL, raw)
			require.ErrorContains(t, err, "127.0.0.1:4222/orders", raw)
		}
	}
	for _, raw := range []string{"nats://host:0/orders", "nats+tls://host:70000/orders"} {
		_, err := wire.Dial(t.Context(), raw, wire.Options{})
		require.ErrorIs(t, err, wire.ErrURL, raw)
		require.ErrorContains(t, err, "there is no port")
	}
	_, err := wire.Listen(t.Context(), "nats://127.0.0.1:1/orders", wire.Options{ReusePort: true})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	over := natswire.Transport{Conn: connectTo(t, broker(t))}
	for _, raw := range []string{"x://host/orders", "x://me@/orders"} {
		_, err = over.Dial(t.Context(), parsed(t, raw), wire.Options{})
		require.ErrorIs(t, err, wire.ErrURL)
	}
}

// No secret of a URL is in an error.
func TestSecrets_OfURL(t *testing.T) {
	s := broker(t)
	at := strings.TrimPrefix(s.ClientURL(), "nats://")
	for _, raw := range []string{"nats://me:s3cret@" + at + "/name", "nats://t0ken@" + at + "/name", "nats://me:s3cret@127.0.0.1:1/name", "nats://me:s3c#ret@127.0.0.1:1/name", "nats://me:s3cret@" + at + "/a..b"} {
		_, err := wire.Dial(t.Context(), raw, wire.Options{})
		for ; err != nil; err = errors.Unwrap(err) {
			require.NotContains(t, err.Error(), "s3c")
			require.NotContains(t, err.Error(), "t0ken")
		}
	}
	ln := listenAt(t, "nats://me:s3cret@"+at+"/name", wire.Options{})
	require.Equal(t, "nats://"+at+"/name", ln.URL())
}

// Addresses have the server and the name, but no inbox.
func TestAddresses(t *testing.T) {
	s := broker(t)
	here, there := pairAt(t, listenAt(t, s.ClientURL()+"/name", wire.Options{}), wire.Options{})
	for _, w := range []wire.Wire{here, there} {
		require.Equal(t, "nats", w.RemoteAddr().Network())
		require.Equal(t, s.Addr().String()+"/name", w.RemoteAddr().String())
		require.Equal(t, s.Addr().String(), w.LocalAddr().String())
		require.False(t, wire.IsPrivate(w), "the NATS server can read the frames, even at a loopback address")
	}
}

// Inboxes have the prefix of the connection.
func TestInbox_Prefix(t *testing.T) {
	s := broker(t)
	spy := connectTo(t, s)
	heard, err := spy.SubscribeSync("mine.inbox.*")
	require.NoError(t, err)
	require.NoError(t, spy.Flush())
	here, there := pairOver(t, connectTo(t, s, nats.CustomInboxPrefix("mine.inbox")), connectTo(t, s))
	carries(t, there, here, "through inboxes of a kind of its own")
	m, err := heard.NextMsg(hangs)
	require.NoError(t, err)
	h, _, err := parseMessage(m.Data)
	require.NoError(t, err)
	require.Equal(t, kindWelcome, h.kind)
}
