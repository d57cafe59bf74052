package main

import (
	"fmt"
	"io"
)

// guardRatio is how many times the calls of a bare ping-pong this library's 1,024 callers have to reach at least.
const guardRatio = 6

const guardTries = 3

// guard checks that, in the best of three tries. What it compares it measures in one run, so that a slow machine, or a busy one, is slow for both.
func guard(measure func(cell) row, stdout, stderr io.Writer, impls []*impl) error {
	many, err := findCell("call-64B/1024/"+thisLibrary, impls)
	if err != nil {
		return err
	}
	one, err := findCell("call-64B/1/floor-pingpong", impls)
	if err != nil {
		return err
	}
	var best float64
	for try := 1; try <= guardTries && best < guardRatio; try++ {
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
	if best < guardRatio {
		return fmt.Errorf("1,024 callers make %.1f times the calls of a bare ping-pong, and should make at least %d times as many", best, guardRatio)
	}
	fmt.Fprintf(stdout, "1,024 callers make %.1f times the calls of a bare ping-pong; at least %d are asked for\n", best, guardRatio)
	return nil
}
