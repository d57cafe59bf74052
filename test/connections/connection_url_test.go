package connections

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	_ "github.com/asterisque-go/asterisque/wire/classicwire"
	_ "github.com/asterisque-go/asterisque/wire/smuxwire"
	"github.com/asterisque-go/asterisque/wire/stdiowire"
)

var registerStdio = sync.OnceValue(func() error { return stdiowire.Register() })

// TestConnect_UnusableURL checks the schemes of the root module. An error that is not final would
// be retried forever.
func TestConnect_UnusableURL(t *testing.T) {
	require.NoError(t, registerStdio())
	cases := []struct{ url, why, example string }{
		{"unix://", "path of the socket is missing", "unix:///run/app.sock"},
		{"unix:///run/", "path of the socket is missing", "unix:///run/app.sock"},
		{"unix://run/app.sock", `"run" stands where a host would be`, "unix:///run/app.sock"},
		{"unix:%zz", "invalid URL escape", "unix:///run/app.sock"},
		{"unix:///a?b", "a query", "unix:///run/app.sock"},
		{"unix:///a#b", "a fragment", "unix:///run/app.sock"},
		{"unix:///a%00b", "a zero byte", "unix:///run/app.sock"},
		{"unix:///" + strings.Repeat("a", 2000), "the path has 2001 bytes", "unix:///run/app.sock"},
		{"mem://", "the name is missing", "mem://name"},
		{"mem:name", "the name is missing", "mem://name"},
		{"mem://me@name", "a user", "mem://name"},
		{"mem://name?a", "a query", "mem://name"},
		{"mem://name#a", "a fragment", "mem://name"},
		{"stdio:", "the program is missing", "stdio:///usr/lib/app/plugin?arg=-v"},
		{"stdio://host/program", "nothing but a program", "stdio:///usr/lib/app/plugin?arg=-v"},
		{"stdio:program#a", "nothing but a program", "stdio:///usr/lib/app/plugin?arg=-v"},
		{"stdio:program?args=x", "nothing but arg=", "stdio:///usr/lib/app/plugin?arg=-v"},
		{"stdio:program?arg=%zz", "invalid URL escape", "stdio:///usr/lib/app/plugin?arg=-v"},
		{"stdio:%zz", "invalid URL escape", "stdio:///usr/lib/app/plugin?arg=-v"},
	}
	for _, scheme := range []string{"tcp", "tls", "smux", "smux+tls", "classic"} {
		example := scheme + "://127.0.0.1:5330"
		for rest, why := range map[string]string{
			":host:1": "two slashes", "://": "host is missing", "://:1": "host is missing", "://host": "port is missing", "://host:0": "port 0",
			"://host:70000": "port 70000", "://host:1/path": "a path", "://me@host:1": "a user", "://host:1?a": "a query", "://host:1#a": "a fragment",
		} {
			cases = append(cases, struct{ url, why, example string }{scheme + rest, why, example})
		}
	}
	node := testkit.NewNode(t)
	for _, c := range cases {
		t.Run(c.url[:min(len(c.url), 40)], func(t *testing.T) {
			conn, err := node.Connect(testkit.Background, c.url, asterisque.ReconnectConfig{RetryFatal: true})
			require.ErrorIs(t, err, wire.ErrURL)
			require.Nil(t, conn)
			require.ErrorContains(t, err, c.why)
			require.ErrorContains(t, err, c.example)
			shown, _, _ := strings.Cut(strings.ReplaceAll(c.url, "me@", ""), "?")
			shown, _, _ = strings.Cut(shown, "#")
			require.ErrorContains(t, err, "dial "+shown)
		})
	}
}
