package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
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
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && stale(ctx, path) && os.Remove(path) == nil {
		l, err = new(net.ListenConfig).Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, err
	}
	return newListener(l, socketURL(path)), nil
}

// stale reports whether path is a socket that nobody listens at. Another kind of file is never
// stale.
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
	if err := transport.Bare(u); err != nil {
		return "", err
	}
	const example = "for example unix:///run/app.sock, or unix:app.sock for a relative path"
	if u.Host != "" {
		return "", fmt.Errorf("%q stands where a host would be; %s", u.Host, example)
	}
	path, err := url.PathUnescape(u.Opaque)
	if err != nil {
		return "", err
	}
	if path += u.Path; path == "" || strings.HasSuffix(path, "/") {
		return "", fmt.Errorf("the path of the socket is missing; %s", example)
	}
	return path, nil
}

// socketURL returns the URL of a path.
func socketURL(path string) string {
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "unix", Path: filepath.ToSlash(path)}).String()
	}
	return (&url.URL{Scheme: "unix", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
}
