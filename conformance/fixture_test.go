package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
)

var every = flag.Bool("every", false, "play the scenarios over TLS and WebSocket as well")

// built returns the program of examples/interop, which offers the fixture.
func built(t *testing.T, args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "interop")
	cmd := exec.Command("go", append(append([]string{"build"}, args...), "-o", program, ".")...)
	cmd.Dir = "../examples/interop"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// fixture is a command that offers the fixture, and the features that the command lacks.
type fixture struct {
	command  []string
	without  string
	patience time.Duration
}

func ours(t *testing.T, args ...string) fixture {
	return fixture{command: []string{built(t, args...)}, patience: patience}
}

// inTime matches the scenarios in which the peer must act within a time.
const inTime = "takes too long|without an answer|nothing for the timeout|sign of life|acknowledged soon|sends an Ack at once|gives up soon"

// patient gives the fixture, too, time limits of minutes: no machine is that slow. It excludes the
// scenarios about short time limits.
func (f fixture) patient() fixture {
	f.command = append(f.command[:len(f.command):len(f.command)], "-patient")
	f.without += ",haste"
	f.patience = 2 * time.Minute
	return f
}

// start runs the fixture until the test ends, and returns its URL if it listens.
func (f fixture) start(t *testing.T, args ...string) (url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, f.command[0], append(append(f.command[1:len(f.command):len(f.command)], "-fixture"), args...)...)
	cmd.Dir = "../examples/interop"
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	if args[0] == "-listen" {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "%s", &stderr)
		url = strings.TrimSpace(strings.TrimPrefix(line, "listens at "))
	}
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(io.Discard, lines) }) // until the program has ended
	t.Cleanup(func() {
		cancel()
		reading.Wait()
		cmd.Wait() // it was killed
		require.Empty(t, stderr.String())
	})
	return url
}

// playAgainst plays the scenarios that match expr in both roles, and returns the output, and the
// failed scenarios.
func (f fixture) playAgainst(t *testing.T, scheme, expr string, connecting bool) (out string, failed []string) {
	t.Helper()
	args := []string{"-quiet", "-without", f.without, "-run", expr, "-patience", f.patience.String()}
	if connecting {
		peer := []string{"-listen", local(scheme)}
		if scheme == "tls" {
			ca := filepath.Join(t.TempDir(), "cert.pem")
			peer, args = append(peer, "-cert", ca), append(args, "-ca", ca)
		}
		args = append(args, "-dial", f.start(t, peer...))
		out = f.told(t, args, nil)
	} else {
		args = append(args, "-listen", local(scheme))
		out = f.told(t, args, func(url string) { f.start(t, "-dial", url) })
	}
	for _, m := range regexp.MustCompile(`(?m)^FAILED +\S+ +(.*)$`).FindAllStringSubmatch(out, -1) {
		failed = append(failed, m[1])
	}
	return out, failed
}

// told runs the program, and calls listening when the program reports its URL.
func (f fixture) told(t *testing.T, args []string, listening func(url string)) string {
	r, w := io.Pipe()
	var playing sync.WaitGroup
	playing.Go(func() {
		run(t.Context(), args, w) // the output has the result
		w.Close()
	})
	defer playing.Wait()
	var out strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "listens at "); ok && listening != nil {
			listening(url)
		}
		out.WriteString(lines.Text() + "\n")
	}
	return out.String()
}

func local(scheme string) string {
	url := scheme + "://127.0.0.1:0"
	if strings.HasPrefix(scheme, "ws") {
		url += "/rpc"
	}
	return url
}

// requirePasses requires that each scenario passes in both roles, or is skipped because it belongs
// to the other role or needs a feature that the fixture lacks.
func (f fixture) requirePasses(t *testing.T, scheme string) {
	f.requireInTime(t, scheme)
	for role, connecting := range map[string]bool{"connects": true, "accepts": false} {
		t.Run("the player "+role, func(t *testing.T) {
			t.Parallel()
			out, _ := f.patient().playAgainst(t, scheme, "", connecting)
			require.NotContains(t, out, "FAILED  ")
			require.Regexp(t, `(?m)^\d{3} ok, 0 FAILED`, out)
			for _, line := range strings.Split(out, "\n") {
				if strings.HasPrefix(line, "skipped") {
					require.Regexp(t, `the player (connects|accepts) in it$|the peer is without |has not announced `, line)
				}
			}
		})
	}
}

// requireInTime requires that the peer acts in time in the scenarios of inTime. It repeats a failed
// run with more patience, because the machine may have been busy: a peer with the defect is late in
// each run.
func (f fixture) requireInTime(t *testing.T, scheme string) {
	for role, connecting := range map[string]bool{"connects": true, "accepts": false} {
		t.Run("in time, the player "+role, func(t *testing.T) {
			t.Parallel()
			f := f
			for {
				out, failed := f.playAgainst(t, scheme, inTime, connecting)
				if len(failed) == 0 {
					require.Regexp(t, `(?m)^[1-9] ok, 0 FAILED`, out)
					return
				}
				require.False(t, *every || f.patience > time.Minute, out)
				t.Log(out)
				f.patience *= 5
			}
		})
	}
}

func TestScenarios_Library(t *testing.T) {
	t.Parallel()
	f := ours(t)
	f.requirePasses(t, "tcp")
	if *every {
		t.Run("over WebSocket", func(t *testing.T) { f.requirePasses(t, "ws") })
		t.Run("over TLS", func(t *testing.T) { f.requirePassesTLS(t) })
	}
}

func TestScenarios_JavaScript(t *testing.T) {
	t.Parallel()
	needNode(t)
	f := fixture{command: []string{"node", "peer.mjs"}, without: "keys", patience: patience}
	f.requirePasses(t, "tcp")
	if *every {
		t.Run("over WebSocket", func(t *testing.T) { f.requirePasses(t, "ws") })
	}
}

// requirePassesTLS generates a certificate on the listening side, which the other side trusts.
func (f fixture) requirePassesTLS(t *testing.T) {
	f = f.patient()
	out, _ := f.playAgainst(t, "tls", "", true)
	require.NotContains(t, out, "FAILED  ")
	require.Regexp(t, `(?m)^\d{3} ok, 0 FAILED`, out)
	cert, key := pair(t)
	// a peer that connects authenticates the player
	args := []string{"-quiet", "-without", "anonymity" + f.without, "-patience", f.patience.String(), "-listen", "tls://127.0.0.1:0", "-cert", cert, "-key", key}
	out = f.told(t, args, func(url string) { f.start(t, "-dial", url, "-cert", cert) })
	require.NotContains(t, out, "FAILED  ")
	require.Regexp(t, `(?m)^\d{3} ok, 0 FAILED`, out)
}

// pair returns the files of a certificate, which any side that trusts it accepts, and of its key.
func pair(t *testing.T) (cert, key string) {
	issued := testtls.NewAuthority(t).Issue("player", time.Hour)
	der, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: issued.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(b), 0o600))
	}
	return cert, key
}

// needNode skips a test on a computer without Node.js.
func needNode(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed: the peer in JavaScript is not tried")
	}
	_, err := os.Stat("../examples/interop/peer.mjs")
	require.NoError(t, err)
}
