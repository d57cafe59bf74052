package interceptors

import (
	"context"
	"sync"

	"github.com/asterisque-go/asterisque"
)

// errLost is the outcome of a call until next has returned. If the goroutine of the call ends, next
// never returns.
var errLost error = asterisque.ErrPanicked.Withf("the goroutine of the call has ended")

// toTheEnd calls next, and calls done once, when the call is over. An outbound call that carries
// Blocks is over long after its pipe was opened: done then runs on a goroutine of its own. If the
// pipe was opened but next returns an error, both the error and the end of the pipe report; the
// first one counts.
func toTheEnd(ctx context.Context, c *asterisque.Call, next asterisque.Next, done func(error)) error {
	opens := c.Blocks() && !c.Inbound()
	if opens {
		var once sync.Once
		all := done
		done = func(err error) { once.Do(func() { all(err) }) }
		if err := c.WrapBlocks(asterisque.Blocks{End: func(result []byte, err error) ([]byte, error) {
			done(err)
			return result, err
		}}); err != nil {
			done(err)
			return err
		}
	}
	err := errLost
	defer func() {
		if err != nil || !opens {
			done(err)
		}
	}()
	err = next(ctx, c)
	return err
}
