package transport_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// A URL is shown without its secrets.
func TestShowURL(t *testing.T) {
	for raw, want := range map[string]string{
		"":                     "",
		"tcp://127.0.0.1:5330": "tcp://127.0.0.1:5330",
		"127.0.0.1:5330":       "127.0.0.1:5330",
		"[::1]:5330":           "[::1]:5330",
		"unix:///run/a@b.sock": "unix:///run/a@b.sock",
		"unix:@name":           "unix:@name",
		"unix:rel@tive.sock":   "unix:rel@tive.sock",
		"/run/app.sock":        "/run/app.sock",
		"ws://host/@me/rpc":    "ws://host/@me/rpc",
		"ws://host/a%20b":      "ws://host/a%20b",

		"wss://me:s3cret@host:1/rpc?t=t0ken#frag": "wss://host:1/rpc?…",
		"wss://t0ken@host":                        "wss://host",
		"wss://host/rpc?t0ken":                    "wss://host/rpc?…",
		"wss://host/rpc#t0ken":                    "wss://host/rpc?…",
		"wss://me:s3@cret@host/":                  "wss://host/",
		"stdio:program?arg=--pass=s3cret":         "stdio:program?…",
		"tcp:me:s3cret@host:5330":                 "host:5330",
		"me:s3cret@host:5330":                     "host:5330",
		"t0ken:@host:5330":                        "host:5330",
		"t0ken@host:5330":                         "host:5330",
		"t0ken@host":                              "host",
		"//me:s3cret@host":                        "//host",

		"ws://me:s3#cret@host/rpc":       "ws://host/rpc", // these are none
		"ws://me:s3?cret@host/rpc":       "ws://host/rpc",
		"ws://me:s3/cret@host/rpc":       "ws://host/rpc",
		"ws://me:s3%zzcret@host/rpc?a=b": "ws://host/rpc?…",
		"ws://me:s3 cret@host/rpc":       "ws://host/rpc",
		"ws://me:s3cret@host\x7f/":       "ws://host\x7f/",
		"me:s3//cret@host:1":             "host:1",
	} {
		require.Equal(t, want, transport.ShowURL(raw), "%q", raw)
	}
}

// An error hides the secrets of a URL in each form.
func TestHideURL_EachForm(t *testing.T) {
	const raw = "wss://m%65ster:s3c%2Fr%20et@host/rpc?token=t0k%2Ben%22&v=1&bare00&x=a+b+c#fr%61gment"
	u, err := url.Parse(raw)
	require.NoError(t, err)
	for _, text := range []string{
		raw, fmt.Sprintf("%q", raw), u.String(), u.Redacted(), u.RequestURI(), u.User.String(), u.RawQuery, fmt.Sprint(u.Query()),
		"s3c/r et", "s3c%2Fr%20et", "s3c%2Fr+et", "t0k+en\"", `t0k+en\"`, "t0k%2Ben%22", "bare00", "a b c", "fragment", "fr%61gment",
		"the password of mester is s3c/r et", "Basic bWVzdGVyOnMzYy9yIGV0",
	} {
		got := transport.HideURL(errors.New("it says: "+text), raw).Error()
		for _, secret := range []string{"mester", "m%65ster", "s3c", "r et", "t0k", "en\"", "bare00", "a+b", "a b", "gment", "bWVzdGVyOnMzYy9yIGV0"} {
			require.NotContains(t, got, secret, "%q", text)
		}
		require.True(t, strings.HasPrefix(got, "it says: "), got)
	}
	kept := "dial tcp 127.0.0.1:5330 at host/rpc: token v"
	require.Equal(t, kept, transport.HideURL(errors.New(kept), raw).Error(), "what is no secret, or too short for one")
	for _, short := range []string{"ws://a:b@host/", "ws://host/rpc?v=1"} {
		u, err := url.Parse(short)
		require.NoError(t, err)
		got := transport.HideURL(fmt.Errorf("%s and %s", short, u.RequestURI()), short).Error()
		require.NotRegexp(t, `a:|b@|=1`, got)
	}
	require.NotContains(t, transport.HideURL(errors.New("ws://me:***@host/ and //me:xxxxx@host"), "ws://me:s3cret@host/").Error(), "me:")
}

// errors.Is and errors.As look into the hidden error.
func TestHideURL_IsAndAs(t *testing.T) {
	const raw = "ws://me:s3cret@host/"
	cause := &url.Error{Op: "Get", URL: raw, Err: &os.PathError{Op: "s3cret", Path: raw, Err: os.ErrNotExist}}
	err := transport.HideURL(cause, raw)
	requireNoSecret(t, err)
	require.ErrorIs(t, err, os.ErrNotExist)
	var found *url.Error
	require.ErrorAs(t, err, &found)
	require.NoError(t, transport.HideURL(nil, raw))
	require.Equal(t, error(cause), transport.HideURL(cause, "ws://host/"), "a URL without secrets changes nothing")
}

// requireNoSecret requires that no way to print an error shows the secret.
func requireNoSecret(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, text := range []string{e.Error(), fmt.Sprintf("%v %+v %q", e, e, e)} {
			require.NotContains(t, text, "s3c")
			require.NotContains(t, text, "t0k")
		}
	}
}

// secretURLs are the parts after "scheme:" of URLs with a password and a token.
var secretURLs = []string{
	"//me:s3cret@127.0.0.1:1", "//t0ken@127.0.0.1:1/", "//127.0.0.1:1?t=t0ken", "//127.0.0.1:1?t0ken", "//127.0.0.1:1#t0ken", "//me:s3cret@", "//me:s3cret@127.0.0.1",
	"//me:s3cret@127.0.0.1:port", "//me:s3%zzcret@127.0.0.1:1", "//me:s3cret@127.0.0.1:1/\x7f", "//me:s3c#ret@127.0.0.1:1", "//me:s3c/ret@127.0.0.1:1", "//me:s3c?ret@127.0.0.1:1",
	"me:s3cret@127.0.0.1:1", "t0ken@127.0.0.1:1", "/path?t=t0ken", "///path?t=t0ken",
}

// talkative is a Transport that repeats all its arguments in errors.
type talkative struct{}

func (talkative) fail(u *url.URL) error {
	password, _ := u.User.Password()
	return fmt.Errorf("%w: %s, %q, %s, %+v", net.ErrClosed, u, u, password, &url.Error{Op: "Get", URL: u.String(), Err: errors.New(u.RawQuery + u.Fragment + u.Opaque)})
}
func (l talkative) Dial(_ context.Context, u *url.URL, _ wire.Options) (wire.Wire, error) {
	return nil, l.fail(u)
}
func (l talkative) Listen(_ context.Context, u *url.URL, _ wire.Options) (wire.Listener, error) {
	return nil, l.fail(u)
}

// Errors of Dial and Listen have no secrets of the URL.
func TestHideURL_DialAndListen(t *testing.T) {
	own := "x-" + strings.ToLower(rand.Text())
	require.NoError(t, wire.Register(own, talkative{}))
	config, _ := testtls.Configs(t)
	server := wire.Options{TLS: config}
	for _, scheme := range []string{"tcp:", "tls:", "unix:", "mem:", own + ":", "no-such:", ""} {
		for _, rest := range secretURLs {
			if scheme == "unix:" && !strings.HasPrefix(rest, "/") {
				continue // a path
			}
			t.Run(scheme+rest, func(t *testing.T) {
				_, err := wire.Dial(t.Context(), scheme+rest, server)
				requireNoSecret(t, err)
				_, err = wire.Listen(t.Context(), scheme+rest, server)
				requireNoSecret(t, err)
			})
		}
	}
	_, err := wire.Dial(t.Context(), own+"://me:s3cret@host", wire.Options{})
	require.ErrorIs(t, err, net.ErrClosed, "the cause is still found")
}
