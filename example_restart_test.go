package asterisque_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// A server takes over its socket from systemd, if systemd has started it, and shuts down
// gracefully, so that a replacement is not noticed by clients.
func ExampleNode_Shutdown() {
	life, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	node := asterisque.NewNode()
	ln, err := wire.Inherited("", wire.Options{})
	if errors.Is(err, wire.ErrNotInherited) { // started by hand
		ln, err = wire.Listen(life, "tcp://127.0.0.1:0", wire.Options{})
	}
	if err != nil {
		log.Panic(err)
	}
	stop() // as SIGTERM does at a replacement
	if err := node.Serve(life, ln); err != nil {
		log.Panic(err)
	}
	// Running calls have 30 s to finish: see Timeouts.Drain.
	fmt.Println("ends:", node.Shutdown(context.Background()))
	// Output: ends: <nil>
}
