package main

import (
	"fmt"
	"io"
)

const guardTries = 3

// guard checks that this library's 1,024 callers make at least least times the calls of a bare
// ping-pong, in the best of three tries. It measures all compared cells in one run, so that a slow
// machine, or a busy one, is slow for all.
//
// On some machines a ping-pong is so cheap that bare frames of 1,024 callers, the lower bound for
// calls, do not reach twice the required number. There, half of the number of bare frames is
// enough.
func guard(least float64, measure func(cell) row, stdout, stderr io.Writer, impls []*impl) error {
	var cells []cell
	for _, name := range []string{"call-64B/1/floor-pingpong", "call-64B/1024/" + thisLibrary, "call-64B/1024/floor-pipelined"} {
		c, err := findCell(name, impls)
		if err != nil {
			return err
		}
		cells = append(cells, c)
	}
	var best float64
	for try := 1; try <= guardTries; try++ {
		var calls []float64
		for _, c := range cells {
			r := measure(c)
			if r.Error != "" {
				return fmt.Errorf("%s: %s", r.Impl, r.Error)
			}
			calls = append(calls, float64(r.OpsPerS))
		}
		bare, ours, pipelined := calls[0], calls[1], calls[2]
		asked := min(least, pipelined/bare/2)
		fmt.Fprintf(stderr, "try %d: %s calls/s of 1,024 callers, %s of a bare ping-pong, %s of bare frames of 1,024 callers: %.1f times the ping-pong, asked %.1f\n",
			try, number(figure(ours)), number(figure(bare)), number(figure(pipelined)), ours/bare, asked)
		if ours/bare >= asked {
			fmt.Fprintf(stdout, "1,024 callers make %.1f times the calls of a bare ping-pong; %.1f are asked for\n", ours/bare, asked)
			return nil
		}
		best = max(best, ours/bare)
	}
	return fmt.Errorf("1,024 callers make %.1f times the calls of a bare ping-pong, and should make %g times as many, or half as many as bare frames of 1,024 callers", best, least)
}
