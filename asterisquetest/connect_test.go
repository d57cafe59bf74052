package asterisquetest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// everywhere runs a test outside a synctest bubble, and then inside one.
func everywhere(t *testing.T, do func(t *testing.T)) {
	t.Run("outside", do)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, do) })
}

// One line connects two nodes.
func TestConnect_OneLine(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		var here, there *asterisque.Session
		require.Empty(t, run(func(t2 *fakeT) {
			here, there = asterisquetest.Connect(t2, service())
			got, err := greet.Call(background, here, "asterisk")
			require.NoError(t, err)
			require.Equal(t, "hello, asterisk", got)
			_, err = greet.Call(background, there, "asterisk")
			require.ErrorIs(t, err, asterisque.ErrNoFunction, "here offers nothing")
			require.Equal(t, "there", here.Peer().ID)
			require.Equal(t, "here", there.Peer().ID)
			n, err := sumOf(background, here, 1, 2, 3)
			require.NoError(t, err)
			require.Equal(t, 6, n)
		}))
		require.ErrorIs(t, here.Err(), asterisque.ErrSessionClosed, "they end with the test")
		require.ErrorIs(t, there.Err(), asterisque.ErrSessionClosed)
	})
}

// Each node has its own options, and the Wire can be replaced.
func TestPair_OptionsAndWire(t *testing.T) {
	var cut *wiretest.Wire
	here, there := asterisquetest.Pair{
		Here:  []asterisque.Option{asterisque.WithID("client"), asterisque.WithService(service())},
		There: []asterisque.Option{asterisque.WithCodecs(codec.JSON)},
		Wire: func() (a, b wire.Wire) {
			a, b = wire.Pipe()
			cut = wiretest.Faulty(a, wiretest.Faults{})
			return cut, b
		},
	}.Connect(t)
	require.Equal(t, "client", there.Peer().ID)
	got, err := greet.Call(background, there, "asterisk")
	require.NoError(t, err)
	require.Equal(t, "hello, asterisk", got)
	cut.Cut()
	<-here.Done()
}

// The nodes belong to the test: they stay open after the session.
func TestConnectNodes_StayOpen(t *testing.T) {
	a, b := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(service()))
	defer a.Close()
	defer b.Close()
	for range 2 {
		var here *asterisque.Session
		require.Empty(t, run(func(t2 *fakeT) {
			here, _ = asterisquetest.ConnectNodes(t2, a, b)
			_, err := greet.Call(background, here, "asterisk")
			require.NoError(t, err)
		}))
		require.ErrorIs(t, here.Err(), asterisque.ErrSessionClosed)
	}
}

// Nodes that do not connect fail the test.
func TestConnect_Failure(t *testing.T) {
	refuses := asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return nil, asterisque.ErrUnauthorized.Withf("not today")
	}})
	invalid := asterisque.WithWorkers(asterisque.Workers{Session: -7})
	for name, c := range map[string]struct {
		pair asterisquetest.Pair
		want string
	}{
		"refused":       {asterisquetest.Pair{There: []asterisque.Option{refuses}}, "unauthorized: not today"},
		"invalid here":  {asterisquetest.Pair{Here: []asterisque.Option{invalid}}, "-7"},
		"invalid there": {asterisquetest.Pair{There: []asterisque.Option{invalid}}, "-7"},
	} {
		for _, how := range []func(t *fakeT){
			func(t *fakeT) { c.pair.Connect(t) },
			func(t *fakeT) {
				a, b := asterisque.NewNode(c.pair.Here...), asterisque.NewNode(c.pair.There...)
				t.Cleanup(func() { a.Close(); b.Close() })
				asterisquetest.ConnectNodes(t, a, b)
			},
		} {
			went := false
			said := run(func(t *fakeT) { how(t); went = true })
			require.Len(t, said, 1, name)
			require.Contains(t, said[0], "asterisquetest: the nodes do not connect: ", name)
			require.Contains(t, said[0], c.want, name)
			require.False(t, went, "the test goes no further")
		}
	}
}

// at returns the source position the given number of lines below its caller.
func at(below int) string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", filepath.ToSlash(file), line+below)
}

// Calls that still run at the end fail the test.
func TestLeftCalls_FailTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var place string
		var here, there *asterisque.Session
		release := make(chan struct{})
		defer close(release)
		for name, c := range map[string]struct {
			leave func(t *fakeT)
			want  []string
		}{
			"unary": {func(t *fakeT) {
				place = at(1)
				go hold.Call(background, here, "x")
			}, []string{`here has called function 11 "hold" at PLACE, 6s ago`, `there serves function 11 "hold", for 6s`}},
			"the other way": {func(t *fakeT) {
				go func() {
					place = at(1)
					hold.Call(background, there, "x")
				}()
			}, []string{`there has called function 11 "hold" at PLACE, 6s ago`, `here serves function 11 "hold", for 6s`}},
			"stream": {func(t *fakeT) {
				place = at(1)
				sum.Open(background, here, 1)
			}, []string{`here has called function 20 "sum" at PLACE, 6s ago`, `there serves function 20 "sum", for 6s`}},
			"untyped": {func(t *fakeT) {
				place = at(1)
				go here.Call(background, 11, []byte{0x60})
			}, []string{`here has called function 11 at PLACE, 6s ago`, `there serves function 11 "hold", for 6s`}},
			"untyped stream": {func(t *fakeT) {
				place = at(1)
				asterisque.OpenOn(background, here, 20, []byte{1})
			}, []string{`here has called function 20 at PLACE, 6s ago`, `there serves function 20 "sum", for 6s`}},
			"behind code of the program": {func(t *fakeT) {
				on := asterisque.Intercept(wrapper{here}, around)
				place = at(1)
				go hold.Call(background, on, "x")
			}, []string{`here has called function 11 "hold" at PLACE, 6s ago`, `there serves function 11 "hold", for 6s`}},
			"a handler whose call was given up": {func(t *fakeT) {
				ctx, cancel := context.WithTimeout(background, time.Second/2)
				defer cancel()
				stay.Call(ctx, here, "x")
			}, []string{`there serves function 12 "stay", for 6.5s`}},
		} {
			said := run(func(t *fakeT) {
				svc := service()
				stay.Handle(svc, func(context.Context, string) (string, error) { <-release; return "", nil })
				here, there = asterisquetest.Connect(t, nil, asterisque.WithService(svc))
				c.leave(t)
				fakeclock.Sleep(time.Second)
			})
			require.Len(t, said, 1, name)
			want := fmt.Sprintf("asterisquetest: %d still running 5s after the end of the test: wait for results, cancel contexts, abort pipes", len(c.want))
			for _, w := range c.want {
				want += "\n\t" + w
			}
			require.Equal(t, strings.ReplaceAll(want, "PLACE", place), said[0], name)
			require.Error(t, here.Err(), "the nodes are closed all the same")
		}
	})
}

// wrapper is a Caller that passes each call on unchanged.
type wrapper struct{ on asterisque.Caller }

func (w wrapper) Invoke(ctx context.Context, c *asterisque.Call) error { return w.on.Invoke(ctx, c) }

func around(ctx context.Context, c *asterisque.Call, next asterisque.Next) error { return next(ctx, c) }

// The report of many left calls is short.
func TestLeftCalls_ShortReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n, more := range map[int]string{10: "", 11: "\n\tand 2 more"} {
			said := run(func(t *fakeT) {
				here, _ := asterisquetest.Connect(t, service())
				for range n {
					sum.Open(background, here, 1)
				}
				synctest.Wait()
			})
			require.Len(t, said, 1)
			require.Equal(t, 20, strings.Count(said[0], "sum"))
			require.True(t, strings.HasPrefix(said[0], fmt.Sprintf("asterisquetest: %d still running ", 2*n)))
			require.Equal(t, more, said[0][len(said[0])-len(more):])
		}
	})
}

// Calls that end by themselves within the wait are not reported.
func TestLeftCalls_EndThemselves(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		require.Empty(t, run(func(t2 *fakeT) {
			here, there := asterisquetest.Connect(t2, service())
			go hold.Call(t2.Context(), here, "x") // which ends before the cleanups
			_, err := sum.Open(t2.Context(), here, 1)
			require.NoError(t, err)
			c, err := sum.Open(background, here, 1)
			require.NoError(t, err)
			c.Abort(nil)
			_, err = greet.Call(background, there, "nobody")
			require.ErrorIs(t, err, asterisque.ErrNoFunction)
			_, err = sum.Open(background, there, 1) // refused after it was opened
			require.NoError(t, err)
			for range 100 {
				_, err = greet.Call(background, here, "asterisk")
				require.NoError(t, err)
			}
		}))
	})
}

// A call that ends while the test waits for it is not reported.
func TestLeftCalls_EndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := time.Now().Add(4 * time.Second)
		require.Empty(t, run(func(t *fakeT) {
			here, _ := asterisquetest.Connect(t, service())
			go hold.Call(background, here, "x", asterisque.WithTTL(4*time.Second))
			synctest.Wait()
		}))
		require.Equal(t, ended, time.Now(), "it has waited no longer than for that")
	})
}

// A test that has failed before, or was skipped, gets no report of calls.
func TestLeftCalls_FailedTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for name, end := range map[string]func(t *fakeT){
			"failed":  func(t *fakeT) { t.Errorf("it fails") },
			"skipped": func(t *fakeT) { t.skipped = true },
		} {
			said := run(func(t *fakeT) {
				here, _ := asterisquetest.Connect(t, service())
				go hold.Call(background, here, "x")
				synctest.Wait()
				end(t)
			})
			require.NotContains(t, strings.Join(said, ""), "still running", name)
		}
		require.Equal(t, began, time.Now(), "and does not wait for them")
	})
}

// A call is over when its code ends the goroutine.
func TestLeftCalls_Goexit(t *testing.T) {
	exits := func(context.Context, *asterisque.Call, asterisque.Next) error { runtime.Goexit(); return nil }
	panics := func(context.Context, *asterisque.Call, asterisque.Next) error { panic("an interceptor") }
	again := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		next(ctx, c)
		return next(ctx, c)
	}
	for name, i := range map[string]asterisque.Interceptor{"exits": exits, "panics": panics, "again": again} {
		require.Empty(t, run(func(t2 *fakeT) {
			here, _ := asterisquetest.Pair{
				Here:  []asterisque.Option{asterisque.WithOutboundInterceptors(i)},
				There: []asterisque.Option{asterisque.WithService(service())},
			}.Connect(t2)
			done := make(chan struct{})
			go func() {
				defer close(done)
				greet.Call(background, here, "x")
			}()
			<-done
			done = make(chan struct{})
			go func() {
				defer close(done)
				if c, err := sum.Open(background, here, 1); err == nil {
					c.Abort(nil)
				}
			}()
			<-done
		}), name)
	}
}
