package asterisque

import (
	"slices"

	"github.com/asterisque-go/asterisque/internal/piping"
)

// wraps are what is to be put around the Blocks of a call.
type wraps []wrap

// wrap is one of them, and inside of how many interceptors it was put there.
type wrap struct {
	piping.Around
	inside int
}

// take takes out what was put there inside of so many interceptors, or more.
func (w *wraps) take(inside int) (taken []piping.Around) {
	*w = slices.DeleteFunc(*w, func(one wrap) bool {
		if one.inside >= inside {
			taken = append(taken, one.Around)
		}
		return one.inside >= inside
	})
	return taken
}
