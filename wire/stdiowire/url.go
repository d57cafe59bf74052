package stdiowire

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

const scheme = "stdio"

// Register makes [wire.Dial] start programs, by URLs such as
//
//   - "stdio:///usr/lib/app/plugin?arg=-v&arg=fast", with an absolute path and two arguments
//   - "stdio:plugin", with a program that is looked up in PATH
//
// as Start does with these options. The context of Dial has no effect on the child. It is for
// applications that take URLs only from users with permission to run programs. [wire.Listen] does
// not support the scheme: see [Stdio]. A second call is an error.
func Register(opts ...Option) error {
	if _, err := newConfig(opts); err != nil {
		return fmt.Errorf("stdiowire: register: %w", err)
	}
	return wire.Register(scheme, stdioTransport{opts})
}

// stdioTransport is for "stdio:program".
type stdioTransport struct{ opts []Option }

// Dial implements wire.Dialer.
func (t stdioTransport) Dial(ctx context.Context, u *url.URL, _ wire.Options) (wire.Wire, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd, err := command(u)
	if err != nil {
		return nil, err
	}
	return start(cmd, t.opts)
}

// Listen implements wire.Transport.
func (stdioTransport) Listen(context.Context, *url.URL, wire.Options) (wire.Listener, error) {
	return nil, errors.New("a child does not listen: it has one Wire, which stdiowire.Stdio returns; give it to Node.Accept")
}

// command returns the command of a URL. The error wraps wire.ErrURL.
func command(u *url.URL) (*exec.Cmd, error) {
	name, args, err := program(u)
	if err != nil {
		return nil, transport.BadURL(fmt.Errorf("%w; for example stdio:///usr/lib/app/plugin?arg=-v, or stdio:plugin for a program in PATH", err))
	}
	return exec.Command(filepath.FromSlash(name), args...), nil
}

// program returns the name of the program in u and its arguments.
func program(u *url.URL) (name string, args []string, err error) {
	if u.User != nil || u.Host != "" || u.Fragment != "" {
		return "", nil, errors.New("nothing but a program and its arguments has a meaning here, and an absolute path has three slashes before it")
	}
	if name, err = url.PathUnescape(u.Opaque); err != nil {
		return "", nil, err
	}
	if name += u.Path; name == "" {
		return "", nil, errors.New("the program is missing")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", nil, err
	}
	args = query["arg"]
	if delete(query, "arg"); len(query) > 0 {
		return "", nil, errors.New("the query may have nothing but arg=…")
	}
	return name, args, nil
}
