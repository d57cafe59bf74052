//go:build unix

package chaos

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/priority"
)

// customer returns a random customer.
func (cs *callers) customer(rng *rand.Rand) *cluster.Cluster {
	return cs.customers[rng.IntN(len(cs.customers))]
}

// post posts a call, and gets its outcome.
func (cs *callers) post(c *call, rng *rand.Rand) {
	r, err := cs.posting(c, rng)
	switch {
	case r != "":
	case err != nil && isPassing(err):
		c.end(notRun, "")
		return
	case err != nil:
		c.end(odd, err.Error())
		return
	default:
		return // the time limit of all calls has passed
	}
	if rng.IntN(8) == 0 && cs.withdraw(c, rng, r) {
		c.end(notRun, "")
		return
	}
	cs.await(c, rng, r)
}

// posting posts a call until JetStream may have it. A single call may be rejected.
func (cs *callers) posting(c *call, rng *rand.Rand) (r cluster.Receipt, err error) {
	for times := 0; wait.HoldOff(cs.last, holdOff(times, rng)); times++ {
		opts := []cluster.PostOption{cluster.WithUrgency(priority.Priority(rng.IntN(3) - 1))}
		if rng.IntN(5) == 0 {
			opts = append(opts, cluster.WithDeadline(time.Now().Add(lease/2+upTo(rng, 3*lease))))
		}
		from := cs.customer(rng)
		err = c.does("posts it", func() (err error) {
			r, err = cluster.Post(cs.last, from, theName, c.function(), c.work, opts...)
			return err
		})
		if err == nil || !asterisque.Repeatable(err) || c.single || !isPassing(err) {
			return r, err
		}
	}
	return "", nil
}

// withdraw reports whether a call was withdrawn.
func (cs *callers) withdraw(c *call, rng *rand.Rand, r cluster.Receipt) bool {
	by := cs.customer(rng)
	return c.does("takes it back", func() error { return by.Withdraw(cs.last, r) }) == nil
}

// await waits for the outcome of a call. Some customers get it twice.
func (cs *callers) await(c *call, rng *rand.Rand, r cluster.Receipt) {
	for times := 0; wait.HoldOff(cs.last, holdOff(times, rng)); times++ {
		text, err := cs.result(c, rng, r)
		as := outcomeOf(err)
		if as == open {
			continue
		}
		if as == odd {
			text = err.Error()
		}
		c.end(as, text)
		if as == answered && rng.IntN(3) == 0 {
			if again, err := cs.result(c, rng, r); err == nil {
				c.compare(again)
			}
		}
		return
	}
}

func (cs *callers) result(c *call, rng *rand.Rand, r cluster.Receipt) (text string, err error) {
	by := cs.customer(rng)
	err = c.does("asks for the outcome", func() (err error) {
		text, err = cluster.Result(cs.last, by, book, r)
		return err
	})
	return text, err
}

// outcomeOf returns the outcome that an error stands for.
func outcomeOf(err error) outcome {
	var a *asterisque.Abort
	switch {
	case err == nil:
		return answered
	case errors.Is(err, cluster.ErrWithdrawn), asterisque.Repeatable(err):
		return notRun
	case !errors.As(err, &a):
		return open // NATS did not answer
	case isPassing(err):
		return mayHaveRun
	}
	return odd
}
