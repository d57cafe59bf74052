package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/wire"
)

var background = context.Background()

// hangs is the time after which a test fails that waits for an event. It is longer than any slow
// machine needs.
const hangs = 2 * time.Minute

// soon returns a context with a timeout, for operations that should be short.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(background, hangs)
	t.Cleanup(cancel)
	return ctx
}

// startReceiver starts a receiver that ends with the test, and returns its folder and its URL.
func startReceiver(t *testing.T) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(background)
	ended := make(chan error, 1)
	go func() { ended <- receiveFrom(ctx, ln, dir, io.Discard, io.Discard) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return dir, ln.URL()
}

// connect returns a session with the receiver at url that ends with the test.
func connect(t *testing.T, url string) *asterisque.Session {
	t.Helper()
	node := asterisque.NewNode()
	t.Cleanup(func() { node.Close() })
	sess, err := node.Dial(background, url)
	require.NoError(t, err)
	return sess
}

// write makes a file in a folder of its own and returns its path.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// random returns n pseudorandom bytes, which depend only on the seed.
func random(seed byte, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// send sends the file or folder at path, and returns the last state of the progress.
func send(t *testing.T, sess *asterisque.Session, path string) (*progress, error) {
	t.Helper()
	src, err := openSource(path)
	require.NoError(t, err)
	defer src.root.Close()
	p := newProgress(io.Discard, src.size)
	return p, src.send(background, sess, p)
}

// budget is a connection that is cut after a number of bytes have been written to it.
type budget struct {
	net.Conn
	left int
}

func (c *budget) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b[:min(len(b), c.left)])
	c.left -= n
	if c.left == 0 {
		c.Close()
		err = net.ErrClosed
	}
	return n, err
}

// A copy that was cut continues at its position.
func TestCopy_Continues(t *testing.T) {
	dir, url := startReceiver(t)
	const size = 3 << 20
	content := random(1, size)
	path := write(t, "long.raw", content)

	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
	require.NoError(t, err)
	node := asterisque.NewNode()
	defer node.Close()
	sess, err := node.Attach(background, wire.FromConn(&budget{conn, size / 2}))
	require.NoError(t, err)
	_, err = send(t, sess, path)
	require.ErrorIs(t, err, asterisque.ErrSessionClosed)
	require.NoFileExists(t, filepath.Join(dir, "long.raw"), "it has its name only when it is complete")

	p, err := send(t, connect(t, url), path)
	require.NoError(t, err)
	require.Greater(t, p.from, int64(size/4), "most of what was sent before the cut is there")
	require.Less(t, p.from, int64(size/2))
	require.Equal(t, size-p.from, p.sent, "only the rest is sent")
	require.Equal(t, []string{"long.raw"}, names(t, dir))
	requireContent(t, filepath.Join(dir, "long.raw"), content)
}

// An existing part is used only if its content is the same.
func TestCopy_OtherContent(t *testing.T) {
	content := random(1, 300_000)
	other := random(2, 300_000)
	for _, c := range []struct {
		what, name string
		there      []byte
		from       int
	}{
		{"nothing", "", nil, 0},
		{"the beginning", "f.part", content[:100_000], 100_000},
		{"all of it, but without its name", "f.part", content, 300_000},
		{"the beginning of another file", "f.part", other[:100_000], 0},
		{"a longer part", "f.part", append(content, 'x'), 0},
		{"an empty part", "f.part", nil, 0},
		{"the same file", "f", content, 300_000},
		{"another file of the same size", "f", other, 0},
		{"another file", "f", other[:1], 0},
		{"a file that is shorter, and begins in the same way", "f", content[:100_000], 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir, url := startReceiver(t)
			if c.name != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, c.name), c.there, 0o600))
			}
			p, err := send(t, connect(t, url), write(t, "f", content))
			require.NoError(t, err)
			require.EqualValues(t, c.from, p.from)
			require.EqualValues(t, len(content)-c.from, p.sent)
			require.Equal(t, []string{"f"}, names(t, dir))
			requireContent(t, filepath.Join(dir, "f"), content)
		})
	}
}

// A file that shrinks while it is read is not completed.
func TestCopy_ShrinkingFile(t *testing.T) {
	dir, url := startReceiver(t)
	path := write(t, "f", []byte("too short"))
	src, err := openSource(path)
	require.NoError(t, err)
	defer src.root.Close()
	src.files[0].Size++ // as it was when the folder was listed
	require.ErrorContains(t, src.send(background, connect(t, url), newProgress(io.Discard, 1)), "1 bytes are missing")
	require.NoFileExists(t, filepath.Join(dir, "f"))
}

// offer begins a call and answers with the position to continue at, as a sender does.
func offer(t *testing.T, sess *asterisque.Session, o Offer, from int64) (*asterisque.StreamCall[From, Have, struct{}], error) {
	t.Helper()
	call, err := put.Open(soon(t), sess, o)
	require.NoError(t, err)
	if _, err := call.Recv(background); err != nil {
		return nil, err
	}
	return call, call.Send(background, From{from})
}

// A wrong checksum leaves no file.
func TestCopy_WrongChecksum(t *testing.T) {
	dir, url := startReceiver(t)
	call, err := offer(t, connect(t, url), Offer{"f", 5}, 0)
	require.NoError(t, err)
	w := stream.NewWriter(call.Untyped())
	wrong := sha256.Sum256([]byte("jello"))
	_, err = w.Write(append([]byte("hello"), wrong[:]...))
	require.NoError(t, errors.Join(err, w.Close()))
	_, err = call.Result(soon(t))
	require.ErrorIs(t, err, errDamaged)
	require.Empty(t, names(t, dir))
}

// Missing bytes cannot be skipped.
func TestCopy_MissingBytes(t *testing.T) {
	_, url := startReceiver(t)
	for _, offset := range []int64{3, -3} {
		call, err := offer(t, connect(t, url), Offer{"f", 5}, offset)
		require.NoError(t, err)
		_, err = call.Result(soon(t))
		require.ErrorIs(t, err, errRefused)
	}
}

// Hostile offers are refused.
func TestOffer_Hostile(t *testing.T) {
	dir, url := startReceiver(t)
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "file"), filepath.Join(dir, "file.part")))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), []byte("secret"), 0o600))
	before := names(t, dir)
	sess := connect(t, url)
	for _, o := range []Offer{
		{"", 0}, {".", 0}, {"..", 0}, {"/", 0}, {"../f", 0}, {"a/../../f", 0}, {"a/../f", 0}, {"./f", 0}, {"a//f", 0}, {"a/", 0},
		{filepath.ToSlash(filepath.Join(outside, "f")), 0}, {"f\x00", 0}, {"f.part", 0}, {"F.PART", 0}, {"f", -1}, {"f", -1 << 63},
	} {
		_, err := offer(t, sess, o, 0)
		require.ErrorIs(t, err, errRefused, "%+v", o)
	}
	for _, o := range []Offer{{"link/f", 0}, {"link/file", 6}, {"link/new/f", 0}, {"file", 6}} {
		call, err := offer(t, sess, o, 0)
		if err == nil {
			_, err = call.Result(soon(t))
		}
		require.ErrorContains(t, err, "path escapes from parent", "%+v", o)
	}
	require.Equal(t, before, names(t, dir), "nothing is made")
	require.Equal(t, []string{"file"}, names(t, outside))
	requireContent(t, filepath.Join(outside, "file"), []byte("secret"))
}

// Only one sender at a time writes a file.
func TestClaim_OneSender(t *testing.T) {
	_, url := startReceiver(t)
	first, err := offer(t, connect(t, url), Offer{"f", 5}, 0)
	require.NoError(t, err)

	second, err := put.Open(soon(t), connect(t, url), Offer{"F", 5})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err = second.Recv(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "it waits")

	first.Abort(nil)
	_, err = second.Recv(background)
	require.NoError(t, err, "and has its turn when the first has given up")
}

// The progress bar is for terminals only.
func TestProgress_Terminal(t *testing.T) {
	_, url := startReceiver(t)
	src, err := openSource(write(t, "f", random(1, 1<<20)))
	require.NoError(t, err)
	defer src.root.Close()
	var out bytes.Buffer
	p := newProgress(&out, src.size)
	require.Nil(t, p.bar, "a buffer is no terminal")
	p.showBar(src.size)
	p.every = 0
	require.NoError(t, src.send(background, connect(t, url), p))
	p.stop()
	require.Contains(t, out.String(), "100%")
	require.Contains(t, out.String(), "B/s")
	require.Contains(t, out.String(), "KiB wait", "the session's state stands beside the bar")
}

func requireContent(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s: %d bytes, and not the %d that were sent", path, len(got), len(want))
}
