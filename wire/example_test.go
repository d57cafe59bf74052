package wire_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"

	"github.com/asterisque-go/asterisque/wire"
)

func ExampleFromConn() {
	here, there := net.Pipe() // or any other io.ReadWriteCloser
	go func() {
		w := wire.FromConn(here)
		if err := w.WriteFrames([][]byte{[]byte("hello"), []byte("stars")}); err != nil {
			log.Print(err)
		}
		w.Close()
	}()

	w := wire.FromConn(there)
	defer w.Close()
	for {
		frame, err := w.ReadFrame(1 << 20)
		if err == io.EOF {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", frame)
	}
	// Output:
	// hello
	// stars
}

func ExampleListen() {
	ctx := context.Background()
	// or "tcp://127.0.0.1:0", "unix:///run/stars.sock"
	l, err := wire.Listen(ctx, "mem://stars", wire.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	here, err := wire.Dial(ctx, l.URL(), wire.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer here.Close()
	if err := here.WriteFrames([][]byte{[]byte("hello")}); err != nil {
		log.Fatal(err)
	}

	there, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}
	defer there.Close()
	frame, err := there.ReadFrame(1 << 20)
	fmt.Printf("%s %v\n", frame, err)
	// Output: hello <nil>
}
