package wire_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// The error for a missing socket has the reason and a remedy.
func TestInherited_Missing(t *testing.T) {
	const none = "unset"
	self, other := strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid())
	for _, test := range []struct {
		fds, pid, names string
		name            string
		none            bool // so that the program listens itself
		want            []string
	}{
		{none, none, none, "", true, []string{"LISTEN_FDS", "LISTEN_PID", "not set", ".socket", "wire.Listen"}},
		{none, none, none, "rpc", true, []string{`"rpc"`, "not set"}},
		{"0", self, none, "", true, []string{"LISTEN_FDS=0"}},
		{"1", other, none, "", true, []string{"LISTEN_PID=" + other, self}},
		{"1", other, "a:b", "", true, []string{"LISTEN_PID=" + other, self}},

		{"many", self, none, "", false, []string{`LISTEN_FDS="many"`, "number of sockets"}},
		{"-1", self, none, "", false, []string{`LISTEN_FDS="-1"`}},
		{"9223372036854775807", self, none, "", false, []string{`LISTEN_FDS="9223372036854775807"`}},
		{none, self, none, "", false, []string{`LISTEN_FDS=""`}},
		{"1", none, none, "", false, []string{`LISTEN_PID=""`, self, "ListenFile"}},
		{"1", "me", none, "", false, []string{`LISTEN_PID="me"`, self}},
		{"2", self, none, "", false, []string{"there are 2", "needs a name"}},
		{"2", self, "a:b", "", false, []string{"there are 2", "needs a name", "a:b"}},
		{"2", self, "a:b", "c", false, []string{`"c"`, "none has that name", "a:b"}},
		{"2", self, "a:a", "a", false, []string{`"a"`, "several have that name", "a:a", "FileDescriptorName="}},
		{"2", self, "a", "a", false, []string{"1 names", "LISTEN_FDS=2"}},
		{"1", self, "", "a", false, []string{"none has that name"}},
		{"1", self, none, "a", false, []string{"LISTEN_FDNAMES is not set"}},
		{"1000000000", self, none, "a", false, []string{"LISTEN_FDNAMES is not set"}},
	} {
		t.Run(fmt.Sprintf("FDS=%s PID=%s NAMES=%s %q", test.fds, test.pid, test.names, test.name), func(t *testing.T) {
			for name, value := range map[string]string{"LISTEN_FDS": test.fds, "LISTEN_PID": test.pid, "LISTEN_FDNAMES": test.names} {
				t.Setenv(name, value) // which also restores it
				if value == none {
					require.NoError(t, os.Unsetenv(name))
				}
			}
			_, err := wire.Inherited(test.name, wire.Options{})
			requireParts(t, err, test.want)
			require.Equal(t, test.none, errors.Is(err, wire.ErrNotInherited), "%v", err)
			_, again := wire.InheritedFile(test.name)
			require.Equal(t, err, again)
		})
	}
}

// inheritor names an environment variable. If it is set, the test program runs no tests: it
// inherits sockets of the names in the variable, and sends its identity to each peer that connects
// to one. It ends with its standard input.
const inheritor = "WIRE_TEST_INHERITOR"

// inherit is the program of the process that inherits sockets. It prints its steps on standard
// output.
func inherit(names []string) {
	// The shell also sets the variable and then executes the program in the same process.
	os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	for _, name := range names {
		for range 2 { // inheriting twice returns the same socket twice
			ln, err := wire.Inherited(name, wire.Options{})
			if err != nil {
				fmt.Println(err)
				continue
			}
			go func() { // ends with the process
				for {
					w, err := ln.Accept()
					if err != nil {
						return
					}
					w.WriteFrames([][]byte{[]byte(name)})
					w.Close()
				}
			}()
			fmt.Println(ln.URL())
		}
	}
	if err := exec.Command("/bin/sh", "-c", "test ! -e /dev/fd/3").Run(); err != nil {
		fmt.Println("a process that was started has descriptor 3 as well:", err)
	}
	fmt.Println("end")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startInheritor passes sockets to a process that ends with the test, and returns the output of the
// process.
func startInheritor(t *testing.T, names string, files ...*os.File) []string {
	cmd := exec.Command(os.Args[0])
	cmd.ExtraFiles = files
	cmd.Env = append(os.Environ(), inheritor+"="+names, fmt.Sprint("LISTEN_FDS=", len(files)), "LISTEN_FDNAMES="+names)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, cmd.Wait())
	})
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "end"; {
		said = append(said, lines.Text())
	}
	return said
}

// A process inherits sockets by name.
func TestInherited_ByName(t *testing.T) {
	needHandover(t)
	var files []*os.File
	var want []string
	for _, url := range []string{"tcp://127.0.0.1:0", "unix://" + strings.ReplaceAll(socket(t), " ", "%20")} {
		ln := listen(t, url, wire.Options{})
		f, err := wire.ListenerFile(ln)
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, ln.Close())
		files, want = append(files, f), append(want, ln.URL(), ln.URL())
	}
	plain, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer plain.Close()

	said := startInheritor(t, "a:b:c", append(files, plain)...)
	require.Equal(t, want, said[:4])
	require.Len(t, said, 6)
	require.Contains(t, said[4], `"c": it is no socket`)
	for i, name := range []string{"a", "b"} {
		for range 3 {
			w, err := wire.Dial(t.Context(), want[2*i], wire.Options{})
			require.NoError(t, err)
			frame, err := w.ReadFrame(10)
			require.NoError(t, err)
			require.Equal(t, name, string(frame))
			w.Close()
		}
	}
}

// A process inherits its only socket without a name.
func TestInherited_OnlyOne(t *testing.T) {
	needHandover(t)
	ln := listen(t, "tcp://127.0.0.1:0", wire.Options{})
	f, err := wire.ListenerFile(ln)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, []string{ln.URL(), ln.URL()}, startInheritor(t, "", f))
}
