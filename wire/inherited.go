package wire

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ErrNotInherited is wrapped by the errors of [Inherited] and [InheritedFile] if this process was
// started without sockets. A program that also runs without systemd then listens itself.
var ErrNotInherited = errors.New("no sockets were handed to this process")

// Inherited makes a Listener of a socket that was handed to this process when it was started, as
// systemd does for a service with a .socket unit (sd_listen_fds(3)). The socket stays open when the
// process ends, so that a peer that connects in the meantime waits for the next process:
//
//	ln, err := wire.Inherited("", options)
//	if errors.Is(err, wire.ErrNotInherited) {
//		ln, err = wire.Listen(ctx, "tcp://:5330", options)
//	}
//
// The name chooses among several sockets: it is FileDescriptorName= of the unit, or "rpc.socket"
// for the unit of that name. With an empty name there has to be one socket only. The options are
// as for [ListenOn], and errors as those of [ListenFile].
//
// The process inherits the sockets from descriptor 3 on. LISTEN_FDS is their number, LISTEN_PID the
// process that they are for, and LISTEN_FDNAMES their names, separated by colons. Another program
// than systemd can do the same with the ExtraFiles of an [os/exec.Cmd], and a shell that knows the
// process id:
//
//	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, program, arguments...)
//	cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=rpc")
//	cmd.ExtraFiles = []*os.File{file} // by ListenerFile
//
// Inherited can be called again, for the same socket too. The variables stay set, and the
// descriptors stay open for the life of the process: a Listener has a duplicate. Processes that
// this one starts do not inherit them.
func Inherited(name string, o Options) (Listener, error) {
	f, err := InheritedFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ListenFile(f, o)
}

// InheritedFile is [Inherited] for programs that need the socket itself: [net.FileListener] makes a
// net.Listener of it, for the http.Server of WebSockets or for smux. The file is a duplicate; the
// caller closes it.
func InheritedFile(name string) (*os.File, error) {
	fd, err := inheritedFD(name)
	if err != nil {
		return nil, fmt.Errorf("wire: inherit the socket %q: %w", name, err)
	}
	f, err := duplicate(fd, name)
	if err != nil {
		return nil, fmt.Errorf("wire: inherit the socket %q: descriptor %d, for which LISTEN_FDS=%s: %w", name, fd, os.Getenv("LISTEN_FDS"), err)
	}
	return f, nil
}

// firstInherited is the descriptor of the first socket: the one behind standard input, output and
// errors.
const firstInherited = 3

// inheritedFD returns the descriptor of the socket with a name.
func inheritedFD(name string) (int, error) {
	n, err := inheritedCount()
	if err != nil {
		return 0, err
	}
	var names []string
	if list, ok := os.LookupEnv("LISTEN_FDNAMES"); ok {
		if names = strings.Split(list, ":"); len(names) != n {
			return 0, fmt.Errorf("LISTEN_FDNAMES has %d names, and LISTEN_FDS=%d: each socket needs one", len(names), n)
		}
	}
	if name == "" {
		if n > 1 {
			return 0, fmt.Errorf("there are %d, so it needs a name: LISTEN_FDNAMES=%s", n, strings.Join(names, ":"))
		}
		return firstInherited, nil
	}
	i := slices.Index(names, name)
	switch {
	case names == nil:
		return 0, errors.New("the sockets have no names, because LISTEN_FDNAMES is not set; set it, or ask for the name \"\" if there is one only")
	case i < 0:
		return 0, fmt.Errorf("none has that name: LISTEN_FDNAMES=%s", strings.Join(names, ":"))
	case slices.Contains(names[i+1:], name):
		return 0, fmt.Errorf("several have that name: LISTEN_FDNAMES=%s; give each its own, with FileDescriptorName= in a .socket unit of its own", strings.Join(names, ":"))
	}
	return firstInherited + i, nil
}

// mostInherited is the maximum number of sockets, more than any system allows a process.
const mostInherited = 1 << 30

// inheritedCount returns how many sockets were handed to this process, one at least.
func inheritedCount() (int, error) {
	fds, pid := os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID")
	if fds == "" && pid == "" {
		return 0, fmt.Errorf("%w: LISTEN_FDS and LISTEN_PID are not set; start it by a .socket unit of systemd, or listen with wire.Listen", ErrNotInherited)
	}
	n, err := strconv.Atoi(fds)
	if err != nil || n < 0 || n > mostInherited {
		return 0, fmt.Errorf("LISTEN_FDS=%q is not the number of sockets", fds)
	}
	of, err := strconv.Atoi(pid)
	switch {
	case err != nil:
		return 0, fmt.Errorf("LISTEN_PID=%q is not the id of a process; set it to that of this one, %d, or hand over without variables: see ListenFile", pid, os.Getpid())
	case of != os.Getpid():
		return 0, fmt.Errorf("%w: LISTEN_PID=%d is another one than this, %d, which may be a child of it", ErrNotInherited, of, os.Getpid())
	case n == 0:
		return 0, fmt.Errorf("%w: LISTEN_FDS=0", ErrNotInherited)
	}
	return n, nil
}
