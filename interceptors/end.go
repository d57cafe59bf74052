package interceptors

import (
	"context"
	"sync"

	"github.com/asterisque-go/asterisque"
)

// errLost is the outcome of a call as long as next has not returned: it may never do so, if its
// goroutine ends.
var errLost error = asterisque.ErrPanicked.Withf("the goroutine of the call has ended")

// toTheEnd calls on, and done, once, when the call is over. A call of this side that carries Blocks
// is over long after its pipe was opened: there done runs on a goroutine of its own. Of a pipe that
// was opened, and that nobody gets, both the error and the end are told.
func toTheEnd(ctx context.Context, c *asterisque.Call, next asterisque.Next, done func(error)) error {
	opens := c.Blocks() && !c.Served()
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
