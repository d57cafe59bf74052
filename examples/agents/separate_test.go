package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// named returns the flags for the certificate name of the set in dir.
func named(dir, name string) []string {
	return []string{"-cert", filepath.Join(dir, name+".pem"), "-key", filepath.Join(dir, name+"-key.pem"), "-ca", filepath.Join(dir, "ca.pem")}
}

// start runs a program until stop is called; stop returns the error of the program, and find waits
// for a line of its output.
func start(t *testing.T, args []string) (find func(line string) []string, stop func() error) {
	ctx, interrupt := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		err := run(ctx, args, w, io.Discard)
		w.CloseWithError(io.EOF)
		ended <- err
	}()
	in := bufio.NewScanner(r)
	find = func(line string) []string {
		for in.Scan() {
			if m := regexp.MustCompile(line).FindStringSubmatch(in.Text()); m != nil {
				return m
			}
		}
		t.Fatalf("%v ended without a line that matches %s: %v", args, line, <-ended)
		return nil
	}
	return find, func() error {
		interrupt()
		go io.Copy(io.Discard, r) // ends with the program
		return <-ended
	}
}

// Servers and agents run as separate programs.
func TestSeparate_Programs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "certs")
	require.NoError(t, run(t.Context(), []string{"-write-certs", dir, "-agents", "1"}, io.Discard, io.Discard))
	server, stopServer := start(t, append([]string{"-server", "127.0.0.1:0"}, named(dir, "server")...))
	addr := server(`serves at (.*)`)[1]
	agent, stopAgent := start(t, append([]string{"-agent", "-servers", addr}, named(dir, "agent-01")...))
	agent(addr + " takes calls")
	server(`^server +serving +1 +[1-9]\d* +[1-9]\d* `)
	require.NoError(t, stopServer())
	agent(addr + " is away")
	require.NoError(t, stopAgent())
}

// TestSeparate_Authority tries to connect with several certificates: only agents of the authority
// are admitted.
func TestSeparate_Authority(t *testing.T) {
	ours, err := newAuthority()
	require.NoError(t, err)
	theirs, err := newAuthority()
	require.NoError(t, err)
	secure, err := ours.config("a", x509.ExtKeyUsageServerAuth)
	require.NoError(t, err)
	srv := newServer("a", "tls://127.0.0.1:0", secure, slog.New(slog.DiscardHandler))
	require.NoError(t, srv.start(context.Background()))
	defer srv.stop(context.Background())
	for _, c := range []struct {
		what  string
		by    *authority
		name  string
		usage x509.ExtKeyUsage
		in    bool
	}{
		{"an agent", ours, "agent-01", x509.ExtKeyUsageClientAuth, true},
		{"an agent of an unknown authority", theirs, "agent-01", x509.ExtKeyUsageClientAuth, false},
		{"a server", ours, "b", x509.ExtKeyUsageServerAuth, false},
		{"one without a name", ours, "", x509.ExtKeyUsageClientAuth, false},
	} {
		config, err := c.by.config(c.name, c.usage)
		require.NoError(t, err)
		config.RootCAs = secure.RootCAs
		node := asterisque.NewNode(asterisque.WithTLS(config), asterisque.WithID("agent-01"))
		_, err = node.Dial(t.Context(), srv.address())
		require.Equal(t, c.in, err == nil, "%s: %v", c.what, err)
		require.NoError(t, node.Close())
	}
}
