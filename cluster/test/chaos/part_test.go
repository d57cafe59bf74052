//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Environment variables that make a process a part of the tests: the kind of part, and its plan.
const (
	partOf   = "ASTERISQUE_CHAOS_PART"
	partPlan = "ASTERISQUE_CHAOS_PLAN"
)

// parts are the kinds of parts. A part calls ready once it works, and works until ctx ends.
var parts = map[string]func(ctx context.Context, plan []byte, ready func(string)) error{
	"replica": planned(runReplica),
	"server":  planned(runServer),
}

// planned reads the plan of a part.
func planned[P any](run func(context.Context, P, func(string)) error) func(context.Context, []byte, func(string)) error {
	return func(ctx context.Context, text []byte, ready func(string)) error {
		var plan P
		if err := json.Unmarshal(text, &plan); err != nil {
			return err
		}
		return run(ctx, plan, ready)
	}
}

// runPart runs a part until its standard input ends, at the latest with the test. It returns the
// exit code of the process.
func runPart(name string) int {
	ctx, end := context.WithCancel(context.Background())
	go func() { // ends with the process
		io.Copy(io.Discard, os.Stdin)
		end()
	}()
	err := parts[name](ctx, []byte(os.Getenv(partPlan)), func(text string) { fmt.Println(text) })
	if err != nil {
		fmt.Fprintln(os.Stderr, name, "has ended:", err)
		return 1
	}
	return 0
}
