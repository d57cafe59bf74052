package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// One process copies files that it has generated.
func TestOneProcess(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-size", "4"}, &out, io.Discard))
	require.Contains(t, out.String(), "sent in all                 4.0 MiB")
	require.Contains(t, out.String(), "the SHA-256 of 5 files are the same on both sides")
	require.Empty(t, names(t, temp), "all is removed")
}

// Two processes copy a folder and a file.
func TestTwoProcesses(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "made", "if", "need", "be")
	village := filepath.Join(from, "village")
	require.NoError(t, makeUp(village, 1<<20))
	require.NoError(t, os.Symlink("/etc", filepath.Join(village, "rome")))

	url, wait := listen(t, to)
	var out, warned bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-dial", strings.TrimPrefix(url, "tcp://"), "-send", village}, &out, &warned))
	require.NoError(t, run(t.Context(), []string{"-dial", url, "-send", filepath.Join(village, "potion.txt")}, &out, &warned))
	log := wait()

	n, err := compare(village, filepath.Join(to, "village"))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Equal(t, []string{"potion.txt", "village"}, names(t, to), "a file is sent without the folder that it is in")
	require.Equal(t, []string{"banquet.mov", "forest.raw", "hut", "potion.txt", "silence.wav"}, names(t, filepath.Join(to, "village")))
	require.Contains(t, warned.String(), `"village/rome" is left out`, "links are not followed")
	require.Contains(t, out.String(), `"village/silence.wav"           0 B  empty`)
	require.Equal(t, 6, strings.Count(log, "came now"), log)
}

// An interrupted program reports the interruption.
func TestRun_Interrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	require.Error(t, run(ctx, []string{"-size", "1"}, io.Discard, io.Discard), "and the receiver ends too")
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":               {"-x"},
		`"hello" is not a flag`:         {"hello"},
		"-listen and -dial are for one": {"-listen", "a:1", "-dial", "a:1"},
		"-listen and -dir go together":  {"-listen", "a:1"},
		"-dial and -send go together":   {"-send", "x"},
		"0 MiB are outside 1..65536":    {"-size", "0"},
		"wire: dial tcp://127.0.0.1:0":  {"-dial", "127.0.0.1:0", "-send", "."},
		"wire: listen at tcp://no-port": {"-listen", "no-port", "-dir", t.TempDir()},
		"no-such-file":                  {"-dial", "127.0.0.1:1", "-send", "no-such-file"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out, io.Discard))
	for _, name := range []string{"-listen ADDR", "-dial ADDR", "-dir DIR", "-send PATH", "-size MIB"} {
		require.Contains(t, out.String(), name)
	}
}

// listen runs a filecopy that receives into dir, and returns its URL and a function that interrupts
// it and returns the output since then.
func listen(t *testing.T, dir string) (url string, wait func() string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0", "-dir", dir}, w, io.Discard)
		w.Close()
	}()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	_, rest, ok := strings.Cut(line, "listens at ")
	require.True(t, ok, line)
	url, _, _ = strings.Cut(rest, ",")
	printed := make(chan string, 1)
	go func() { // ends with the program
		b, _ := io.ReadAll(out)
		printed <- string(b)
	}()
	return url, func() string {
		interrupt()
		require.NoError(t, <-ended)
		return <-printed
	}
}

// names lists a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
