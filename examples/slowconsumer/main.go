// Slowconsumer shows the protection against a program that receives more than it consumes: windows
// block only the stream that is too fast, the soft limit blocks a sender without a window, and the
// hard limit ends the session of a sender that ignores it. Everything is in this process, over TCP.
//
// Read windows.go, softlimit.go and hardlimit.go, in this order; stage.go and table.go are their
// common part.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `Slowconsumer shows the three lines of defence against a consumer that is too slow, with a line every half second.

  slowconsumer [-seconds N]

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowconsumer:", err)
		os.Exit(1)
	}
}

// beats is the minimum number of lines of the whole show: -seconds is divided by it.
const beats = 20

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("slowconsumer", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	seconds := flags.Float64("seconds", 10, "how many seconds `N` the show takes, about")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; -h explains", err)
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not a flag; -h explains", flags.Arg(0))
	case !(*seconds >= 0.1 && *seconds <= 3600): // NaN is neither
		return fmt.Errorf("-seconds: %v is outside 0.1..3600", *seconds)
	}
	t := &table{out: stdout, begin: time.Now(), beat: time.Duration(*seconds / beats * float64(time.Second))}
	warnings := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, show := range []func(context.Context, *table, *slog.Logger) error{showWindows, showSoftLimit, showHardLimit} {
		if err := show(ctx, t, warnings); err != nil {
			return err
		}
	}
	return nil
}
