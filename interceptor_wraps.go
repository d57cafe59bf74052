package asterisque

import (
	"slices"

	"github.com/asterisque-go/asterisque/internal/piping"
)

// wraps are the wrappers of a call's Blocks.
type wraps []wrap

// wrap is one wrapper, and the number of interceptors around the one that has added it.
type wrap struct {
	piping.Around
	inside int
}

// take removes and returns the wrappers added inside of at least that number of interceptors.
func (w *wraps) take(inside int) (taken []piping.Around) {
	*w = slices.DeleteFunc(*w, func(one wrap) bool {
		if one.inside >= inside {
			taken = append(taken, one.Around)
		}
		return one.inside >= inside
	})
	return taken
}
