package smuxwire_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/asterisque-go/asterisque/wire/smuxwire"
)

func ExampleMux() {
	here, there := net.Pipe() // or any other connection
	client, err := smuxwire.Client(here)
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close()
	server, err := smuxwire.Server(there)
	if err != nil {
		log.Print(err)
		return
	}
	defer server.Close()

	for _, name := range []string{"one", "two"} {
		w, err := client.Open(context.Background()) // for node.Attach
		if err != nil {
			log.Print(err)
			return
		}
		if err := w.WriteFrames([][]byte{[]byte("hello from " + name)}); err != nil {
			log.Print(err)
			return
		}
		v, err := server.Accept() // for node.Accept
		if err != nil {
			log.Print(err)
			return
		}
		frame, err := v.ReadFrame(100)
		fmt.Printf("%s %v\n", frame, err)
	}
	// Output:
	// hello from one <nil>
	// hello from two <nil>
}
