package main

import (
	"fmt"
	"io"
)

const guardTries = 3

// guard checks that this library's 1,024 callers make at least least times the calls of a bare ping-pong, in the best of three tries. What it compares it measures in one run, so that a slow machine, or a busy one, is slow for both.
func guard(least float64, measure func(cell) row, stdout, stderr io.Writer, impls []*impl) error {
	many, err := findCell("call-64B/1024/"+thisLibrary, impls)
	if err != nil {
		return err
	}
	one, err := findCell("call-64B/1/floor-pingpong", impls)
	if err != nil {
		return err
	}
	var best float64
	for try := 1; try <= guardTries && best < least; try++ {
		floor, ours := measure(one), measure(many)
		for _, r := range []row{floor, ours} {
			if r.Error != "" {
				return fmt.Errorf("%s: %s", r.Impl, r.Error)
			}
		}
		ratio := float64(ours.OpsPerS / floor.OpsPerS)
		best = max(best, ratio)
		fmt.Fprintf(stderr, "try %d: %s calls/s of 1,024 callers, %s of a bare ping-pong: %.1f times\n",
			try, number(ours.OpsPerS), number(floor.OpsPerS), ratio)
	}
	if best < least {
		return fmt.Errorf("1,024 callers make %.1f times the calls of a bare ping-pong, and should make at least %g times as many", best, least)
	}
	fmt.Fprintf(stdout, "1,024 callers make %.1f times the calls of a bare ping-pong; at least %g are asked for\n", best, least)
	return nil
}
