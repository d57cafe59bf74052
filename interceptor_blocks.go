package asterisque

import (
	"slices"

	"github.com/asterisque-go/asterisque/internal/piping"
)

// callInterceptors are the wrappers of a call's Blocks.
type callInterceptors []callInterceptor

// callInterceptor is one wrapper, and the number of interceptors around the one that has added it.
type callInterceptor struct {
	piping.StreamInterceptor
	inside int
}

// take removes and returns the wrappers added inside of at least that number of interceptors.
func (w *callInterceptors) take(inside int) (taken []piping.StreamInterceptor) {
	*w = slices.DeleteFunc(*w, func(one callInterceptor) bool {
		if one.inside >= inside {
			taken = append(taken, one.StreamInterceptor)
		}
		return one.inside >= inside
	})
	return taken
}
