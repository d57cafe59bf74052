// Command bench measures this library beside its peers and beside the floor below all of them, a
// bare TCP connection: the same work, over one connection on the loopback interface, client and
// server in one process. README.md explains the method, and the meaning of the figures.
//
//	go run . -quick         # this library and the floors, in less than a minute
//	go run .                # all implementations
//	go run . -against OLD   # this library beside an older build of this command
//	go run . -h             # all flags
//
// Each cell, which is one workload by one implementation, runs in a separate process: its memory
// and its processor time are measured separately, and one that hangs is killed without harm to the
// rest.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, implementations())
	stop()
	os.Exit(code)
}

// run is the program. It returns 0, 1 if a measurement failed or a figure is WORSE, or 2 if args
// are invalid.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, impls []*impl) int {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return 2 // it has been said
	}
	if o.help {
		return 0
	}
	switch {
	case o.cell != "":
		err = runCell(o, stdout, impls)
	case o.against != "":
		err = against(ctx, o, stdout, stderr, impls)
	case o.guard > 0:
		err = guard(o.guard, func(c cell) row { return measureApart(ctx, c, o.time, grace) }, stdout, stderr, impls)
	default:
		err = measureAll(ctx, o, stdout, stderr, impls)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}
