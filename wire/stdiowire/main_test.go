package stdiowire_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire/stdiowire"
)

// play is the environment variable that makes this test binary a child; its value names the
// behaviour of the child.
const play = "STDIOWIRE_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(play); name != "" {
		run, ok := children[name]
		if !ok {
			log.Fatal("there is no child ", name)
		}
		run()
		os.Exit(0)
	}
	leak.Main(m)
}

// program returns a command that runs one of children.
func program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// With the race detector, a program takes a second to exit.
	cmd.Env = append(os.Environ(), play+"="+name, "GORACE=atexit_sleep_ms=0")
	return cmd
}

var echo = asterisque.Func[string, string](10, "echo")

// children are the behaviours of a child process, by name.
var children = map[string]func(){
	"serve": func() { // a session
		serveUntilItsEnd()
	},
	"serve and print": func() {
		fmt.Println("printed before Stdio has taken over: never do this") // this is too early
		serveUntilItsEnd()
	},
	"print later": func() {
		svc := asterisque.NewService()
		echo.Handle(svc, func(_ context.Context, s string) (string, error) {
			fmt.Println("a stray line")
			return s, nil
		})
		serve(svc)
	},
	"read standard input": func() {
		svc := asterisque.NewService()
		echo.Handle(svc, func(context.Context, string) (string, error) {
			line, err := bufio.NewReader(os.Stdin).ReadString('\n')
			return fmt.Sprintf("%q %v", line, err), nil
		})
		serve(svc)
	},
	"relay": relay,
	"die": func() {
		fmt.Fprintln(os.Stderr, "the disk is on fire")
		os.Exit(3)
	},
	"die after the first frame": func() {
		w, err := stdiowire.Stdio()
		if err != nil {
			log.Fatal(err)
		}
		w.ReadFrame(1 << 20)
		w.WriteFrames([][]byte{[]byte("last words")})
		os.Exit(4)
	},
	"end":           func() {},
	"end at once":   func() { os.Stdin.Close(); os.Stdout.Close() },
	"print and end": func() { fmt.Println("hi") },
	"print a lot":   func() { fmt.Println("usage: plugin [flags]\n\n  -h  help"); io.Copy(io.Discard, os.Stdin) },
	"write garbage": func() { os.Stdout.Write([]byte{0, 0, 0, 4, 0xff, 1, 2, 3}); io.Copy(io.Discard, os.Stdin) },
	"cut a frame":   func() { os.Stdout.Write([]byte{0, 0, 0, 9, 1}) },
	"write at its end": func() {
		io.Copy(io.Discard, os.Stdin)
		os.Stdout.Write(make([]byte, 1<<20))
	},
	"close while reading": func() {
		w, err := stdiowire.Stdio()
		if err != nil {
			log.Fatal(err)
		}
		read := make(chan error)
		go func() {
			for {
				if _, err := w.ReadFrame(1 << 20); err != nil { // the second waits
					read <- err
					return
				}
				time.AfterFunc(10*time.Millisecond, func() { w.Close() })
			}
		}()
		select {
		case err := <-read:
			log.Print(err)
		case <-time.After(2 * time.Minute):
			log.Print("still reading")
		}
		os.Exit(7)
	},
	"stay":            func() { time.Sleep(time.Hour) }, //nolint:forbidigo // the parent ends it
	"leave a process": leaveAProcess,
	"say": func() {
		fmt.Fprint(os.Stderr, "first\n\nsecond\r\nwithout an end")
		io.Copy(io.Discard, os.Stdin)
	},
	"outlive the parent": outliveTheParent,
	"stdio twice": func() {
		if _, err := stdiowire.Stdio(); err != nil {
			log.Fatal(err)
		}
		_, err := stdiowire.Stdio()
		log.Fatal(err)
	},
	"arguments": func() { fmt.Fprintf(os.Stderr, "%q", os.Args[1:]); os.Exit(5) },
}

func serveUntilItsEnd() {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	serve(svc)
}

// serve is a complete child.
func serve(svc *asterisque.Service) {
	w, err := stdiowire.Stdio()
	if err != nil {
		log.Fatal(err)
	}
	node := asterisque.NewNode(asterisque.WithService(svc))
	session, err := node.Accept(context.Background(), w)
	if err != nil {
		log.Fatal(err)
	}
	<-session.Done()
	node.Close()
}

// relay relays between the parent and the address in the first argument.
func relay() {
	c, err := net.Dial("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	go func() { // ends with this process
		io.Copy(c, os.Stdin)
		os.Exit(0)
	}()
	io.Copy(os.Stdout, c)
}

// leaveAProcess starts a process that inherits all pipes, and exits.
func leaveAProcess() {
	cmd := program("sleep until told")
	cmd.Env = append(os.Environ(), play+"=stay")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write([]byte{0, 0, 0, 2, 'o', 'k'})
	fmt.Fprint(os.Stderr, cmd.Process.Pid)
	os.Exit(6)
}

// outliveTheParent writes to all outputs after its Wire has ended, and then cleans up: it writes
// the file in its argument.
func outliveTheParent() {
	w, err := stdiowire.Stdio()
	if err != nil {
		log.Fatal(err)
	}
	_, end := w.ReadFrame(1 << 20)
	log.Print("the parent has gone")
	_, printed := fmt.Println("farewell")
	wrote := w.WriteFrames([][]byte{[]byte("farewell")})
	if err := os.WriteFile(os.Args[1], fmt.Appendf(nil, "%v\n%v\n%v", end, printed, wrote), 0o600); err != nil {
		os.Exit(8)
	}
}

// startChild starts one of children until t ends.
func startChild(t testing.TB, name string, opts ...stdiowire.Option) wireOfChild {
	t.Helper()
	return startCommand(t, program(name), opts...)
}

func startCommand(t testing.TB, cmd *exec.Cmd, opts ...stdiowire.Option) wireOfChild {
	t.Helper()
	w, err := stdiowire.Start(cmd, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return wireOfChild{w, cmd}
}
