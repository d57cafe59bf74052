package flowtest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
)

// jobGroup is a number of running jobs.
type jobGroup struct {
	what     string
	of       int
	finished atomic.Int64
	done     chan struct{} // closed when all have finished
	failed   chan error    // receives the first error
}

func (c *jobGroup) String() string {
	return fmt.Sprintf("%s: %d of %d have finished", c.what, c.finished.Load(), c.of)
}

// start runs do for all numbers below of, on atOnce goroutines, which have to end with the context
// of the stage.
func (s *scenarioStage) start(what string, of, atOnce int, do func(i int) error) *jobGroup {
	c := &jobGroup{what: what, of: of, done: make(chan struct{}), failed: make(chan error, 1)}
	var next atomic.Int64
	for range atOnce {
		s.crews.Go(func() {
			for i := int(next.Add(1)) - 1; i < of; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					c.fail(fmt.Errorf("number %d: %w", i, err))
					return
				}
				if c.finished.Add(1) == int64(of) {
					close(c.done)
				}
			}
		})
	}
	return c
}

// fail keeps the first error.
func (c *jobGroup) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// finish waits until all jobs of all crews are done.
func (s *scenarioStage) finish(crews ...*jobGroup) {
	s.Helper()
	for _, c := range crews {
		select {
		case <-c.done:
		case err := <-c.failed:
			s.Fatalf("%s: %v\n%s%s", c.what, err, tell(crews), s.report())
		case <-s.late:
			s.Fatalf("after %v:\n%s%s", patience, tell(crews), s.report())
		}
	}
}

func tell(crews []*jobGroup) string {
	var lines []string
	for _, c := range crews {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}

// both starts the same jobs from both sides.
func (s *scenarioStage) both(what string, of, atOnce int, do func(on *asterisque.Session, i int) error) []*jobGroup {
	return []*jobGroup{
		s.start(what+" from the dialling side", of, atOnce, func(i int) error { return do(s.dialled, i) }),
		s.start(what+" from the accepting side", of, atOnce, func(i int) error { return do(s.accepted, i) }),
	}
}

// Functions of the services.
const (
	echo uint16 = iota + 1
	upload
	sleep
	read
	callBack
	result
	durable
	measure
	count
)

// echoes makes small calls in both directions, one after the other, concurrently with the rest. If
// the Wire is cut repeatedly, echoes continues until that has happened a few times.
func (s *scenarioStage) echoes(n int) {
	s.Helper()
	s.someEchoes(n)
	for s.cut && s.cuts.Load() < 3 {
		s.someEchoes(n)
	}
}

func (s *scenarioStage) someEchoes(n int) {
	s.Helper()
	var mu sync.Mutex
	var took []time.Duration // guarded by mu
	s.finish(s.both("echoes", n, 1, func(on *asterisque.Session, i int) error {
		begin := time.Now()
		err := s.echo(on, i, 16)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(begin))
		return err
	})...)
	slices.Sort(took)
	s.Logf("%d echoes: median %v, p99 %v", len(took), took[len(took)/2], took[len(took)*99/100])
}

// echo makes one call with size bytes.
func (s *scenarioStage) echo(on *asterisque.Session, i, size int) error {
	got, err := on.Call(s.ctx, echo, numbered(i, size))
	if err == nil && (len(got) != size || number(got) != i) {
		err = fmt.Errorf("the echo of %d bytes has %d, or is another one's", size, len(got))
	}
	return err
}

// numbered returns size bytes that begin with a number.
func numbered(i, size int) []byte {
	b := make([]byte, max(size, 4))
	binary.BigEndian.PutUint32(b, uint32(i))
	return b
}

func number(b []byte) int { return int(binary.BigEndian.Uint32(b)) }

// runs counts the executions of each of a number of calls.
type runs []atomic.Int64

// note counts an execution of a call. params begin with the number of the call.
func (r runs) note(params []byte) { r[number(params)].Add(1) }

// once checks that each call ran exactly once.
func (r runs) once(s *scenarioStage, what string) {
	s.Helper()
	for i := range r {
		if n := r[i].Load(); n != 1 {
			s.Fatalf("%s: number %d ran %d times%s", what, i, n, s.report())
		}
	}
}
