package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// unixTransport is for "unix:///path" and "unix:path".
type unixTransport struct{}

func (unixTransport) Dial(ctx context.Context, u *url.URL, _ Options) (Wire, error) {
	path, err := socketPath(u)
	if err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return FromConn(c), nil
}

func (unixTransport) Listen(ctx context.Context, u *url.URL, o Options) (Listener, error) {
	path, err := socketPath(u)
	if err != nil {
		return nil, err
	}
	if o.ReusePort {
		return nil, transport.NoReusePort("a Unix socket")
	}
	unlock, err := lockPath(ctx, path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return listenUnix(ctx, path)
}

// listenUnix listens at a locked path: a program that has bound it and does not listen yet would
// look dead.
func listenUnix(ctx context.Context, path string) (Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && canLock && stale(ctx, path) && os.Remove(path) == nil {
		ln, err = new(net.ListenConfig).Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, err
	}
	l := newListener(ln, socketURL(path))
	if made, err := os.Lstat(path); err == nil {
		l.file = &socketFile{path, made}
		ln.(*net.UnixListener).SetUnlinkOnClose(false) // it goes by the path alone
	}
	return l, nil
}

// socketFile is the file of a Unix socket that this program has bound.
type socketFile struct {
	path string
	made os.FileInfo
}

// remove removes the file, unless another file has replaced it. The socket is still open, so that
// no other file has its inode number.
func (f *socketFile) remove() {
	now, err := os.Lstat(f.path)
	if err == nil && os.SameFile(f.made, now) {
		os.Remove(f.path)
	}
}

// stale reports whether path is a socket without a listener. Another kind of file is never stale.
func stale(ctx context.Context, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return false
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// socketPath returns the path in u.
func socketPath(u *url.URL) (string, error) {
	path, err := url.PathUnescape(u.Opaque)
	if err == nil {
		path += u.Path
		err = checkPath(u, path)
	}
	if err != nil {
		return "", transport.BadURL(fmt.Errorf("%w; for example unix:///run/app.sock, or unix:app.sock for a relative path", err))
	}
	return path, nil
}

// checkPath returns an error if no socket can have the path in u.
func checkPath(u *url.URL, path string) error {
	if err := transport.Bare(u); err != nil {
		return err
	}
	switch {
	case u.Host != "":
		return fmt.Errorf("%q stands where a host would be, and a Unix socket has none", u.Host)
	case path == "" || strings.HasSuffix(path, "/"):
		return errors.New("the path of the socket is missing")
	case strings.Contains(path, "\x00"):
		return errors.New("the path has a zero byte")
	case len(path) > longestPath(path):
		return fmt.Errorf("the path has %d bytes, and that of a Unix socket has at most %d here", len(path), longestPath(path))
	}
	return nil
}

// longestPath returns the maximum length of such a path: the size of sun_path of unix(7), minus a
// zero byte for the path of a file.
func longestPath(path string) int {
	most := 104
	switch runtime.GOOS {
	case "aix":
		most = 1023
	case "linux", "android", "windows", "solaris", "illumos":
		most = 108
	}
	if abstract(path) {
		return most
	}
	return most - 1
}

// abstract reports whether a path is in the abstract name space of Linux.
func abstract(path string) bool {
	return strings.HasPrefix(path, "@") && (runtime.GOOS == "linux" || runtime.GOOS == "android")
}

// socketURL returns the URL of a path.
func socketURL(path string) string {
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "unix", Path: filepath.ToSlash(path)}).String()
	}
	return (&url.URL{Scheme: "unix", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
}
