//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package wire_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// unixURL returns the URL of a path.
func unixURL(path string) string { return (&url.URL{Scheme: "unix", Path: path}).String() }

// leaveStale leaves a socket file as a killed process does.
func leaveStale(t *testing.T, path string) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
}

// requireReached requires that a connection to the URL of l reaches l.
func requireReached(t *testing.T, l wire.Listener, why string) {
	t.Helper()
	w, err := wire.Dial(t.Context(), l.URL(), wire.Options{})
	require.NoError(t, err, why)
	w.Close()
	_, err = wire.Listen(t.Context(), l.URL(), wire.Options{})
	require.ErrorIs(t, err, syscall.EADDRINUSE, why)
}

// One of several goroutines replaces a stale path.
func TestListen_StaleGoroutines(t *testing.T) {
	const rounds, contenders = 300, 8
	path := socket(t)
	for round := range rounds {
		leaveStale(t, path)
		listeners, errs := [contenders]wire.Listener{}, [contenders]error{}
		var all sync.WaitGroup
		for i := range contenders {
			all.Go(func() { listeners[i], errs[i] = wire.Listen(context.Background(), unixURL(path), wire.Options{}) })
		}
		all.Wait()
		var winner wire.Listener
		for i, l := range listeners {
			if l == nil {
				require.ErrorIs(t, errs[i], syscall.EADDRINUSE)
				continue
			}
			require.Nil(t, winner, "two listen in round %d", round)
			winner = l
		}
		require.NotNil(t, winner, "no listener in round %d: %v", round, errs)
		requireReached(t, winner, "the losers have not removed it")
		require.NoError(t, winner.Close())
		require.NoFileExists(t, path)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left, "no lock is left behind")
}

// contender names an environment variable. If it is set, the test program runs no tests. Each
// non-empty line of its standard input is a path to listen at; an empty line closes the listener.
// It answers "listening", "in use" or "closed".
const contender = "WIRE_TEST_CONTENDER"

func contend() {
	var l wire.Listener
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "" {
			if l != nil {
				l.Close()
			}
			l = nil
			fmt.Println("closed")
			continue
		}
		var err error
		l, err = wire.Listen(context.Background(), unixURL(lines.Text()), wire.Options{})
		switch {
		case err == nil:
			fmt.Println("listening")
		case strings.Contains(err.Error(), syscall.EADDRINUSE.Error()):
			fmt.Println("in use")
		default:
			fmt.Println(err)
		}
	}
	os.Exit(0)
}

// contending is a process that runs contend.
type contending struct {
	in  io.Writer
	out *bufio.Scanner
}

func startContender(t *testing.T) contending {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), contender+"=1", "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, cmd.Wait())
	})
	return contending{in, bufio.NewScanner(out)}
}

// ask sends line to all processes at once, and counts their answers.
func ask(t *testing.T, all []contending, line string) map[string]int {
	for _, c := range all {
		_, err := io.WriteString(c.in, line+"\n")
		require.NoError(t, err)
	}
	answers := make(map[string]int)
	for _, c := range all {
		require.True(t, c.out.Scan())
		answers[c.out.Text()]++
	}
	return answers
}

// One of several processes replaces a stale path.
func TestListen_StaleProcesses(t *testing.T) {
	const rounds, contenders = 100, 4
	path := socket(t)
	var all []contending
	for range contenders {
		all = append(all, startContender(t))
	}
	for round := range rounds {
		leaveStale(t, path)
		require.Equal(t, map[string]int{"listening": 1, "in use": contenders - 1}, ask(t, all, path), "round %d", round)
		c, err := net.Dial("unix", path)
		require.NoError(t, err, "round %d", round)
		c.Close()
		require.Equal(t, map[string]int{"closed": contenders}, ask(t, all, ""))
		require.NoFileExists(t, path)
	}
}

// Close leaves the socket file of another process.
func TestClose_OtherSocketFile(t *testing.T) {
	path := socket(t)
	first := listen(t, unixURL(path), wire.Options{})
	require.NoError(t, os.Remove(path), "removed by another program")
	second := listen(t, unixURL(path), wire.Options{})
	require.NoError(t, first.Close())
	requireReached(t, second, "the file is that of the second")
	require.NoError(t, second.Close())
	require.NoFileExists(t, path)

	require.NoError(t, listen(t, unixURL(path), wire.Options{}).Close(), "there may be another for ever")
}

func TestListen_LockedPath(t *testing.T) {
	path := socket(t)
	lock := path + ".asterisque-lock"
	f, err := os.Create(lock)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = wire.Listen(ctx, unixURL(path), wire.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, lock)
	require.NoFileExists(t, path)

	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_UN), "as if the process had died")
	requireReached(t, listen(t, unixURL(path), wire.Options{}), "a lock without a holder does not block")
	require.NoFileExists(t, lock)
}

func TestListen_MissingFolder(t *testing.T) {
	_, err := wire.Listen(t.Context(), "unix:///nowhere/app.sock", wire.Options{})
	requireParts(t, err, []string{"listen at unix:///nowhere/app.sock", "no such file"})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestListen_LongestPath(t *testing.T) {
	most := 103
	if runtime.GOOS == "linux" {
		most = 107
	}
	dir := socket(t)
	require.NoError(t, os.Mkdir(dir, 0o700))
	longest := filepath.Join(dir, strings.Repeat("x", most-len(dir)-1))
	requireReached(t, listen(t, unixURL(longest), wire.Options{}), "the longest path works")

	want := []string{fmt.Sprintf("the path has %d bytes", most+1), fmt.Sprintf("at most %d", most), "unix:///run/app.sock"}
	_, err := wire.Listen(t.Context(), unixURL(longest+"x"), wire.Options{})
	requireParts(t, err, want)
	require.ErrorIs(t, err, wire.ErrURL)
	_, err = wire.Dial(t.Context(), unixURL(longest+"x"), wire.Options{})
	requireParts(t, err, want)
	require.ErrorIs(t, err, wire.ErrURL)

	if runtime.GOOS == "linux" { // which needs no byte behind a name that is no path
		name := fmt.Sprintf("@%d ", os.Getpid())
		name += strings.Repeat("x", most+1-len(name))
		listen(t, "unix:"+url.PathEscape(name), wire.Options{})
		_, err = wire.Listen(t.Context(), "unix:"+url.PathEscape(name+"x"), wire.Options{})
		require.ErrorContains(t, err, "at most 108")
	}
}
