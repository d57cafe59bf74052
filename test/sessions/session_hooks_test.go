package sessions

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// diary has the calls of hooks, by session.
type diary struct {
	mu      sync.Mutex
	of      map[*asterisque.Session][]string // guarded by mu, as all below
	inside  map[*asterisque.Session]bool
	clashed bool
	first   *asterisque.Session
	within  func(s *asterisque.Session, what string) // is called by each hook; fixed
}

func newDiary() *diary {
	return &diary{of: make(map[*asterisque.Session][]string), inside: make(map[*asterisque.Session]bool)}
}

func (d *diary) note(s *asterisque.Session, what string) {
	d.mu.Lock()
	d.clashed = d.clashed || d.inside[s]
	d.inside[s] = true
	d.of[s] = append(d.of[s], what)
	if d.first == nil {
		d.first = s
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.inside[s] = false
	}()
	if d.within != nil {
		d.within(s, what)
	}
}

func (d *diary) hooks() asterisque.Option {
	return asterisque.WithHooks(asterisque.Hooks{
		SessionBegun: func(s *asterisque.Session) { d.note(s, "begun") },
		SessionEnded: func(s *asterisque.Session, cause error) { d.note(s, "ended: "+cause.Error()) },
		SessionAway:  func(s *asterisque.Session, cause error) { d.note(s, "away") },
		SessionBack:  func(s *asterisque.Session) { d.note(s, "back") },
		LimitChanged: func(s *asterisque.Session, dir asterisque.Direction, state limits.State) {
			d.note(s, dir.String()+" "+state.String())
		},
		Dropped: func(s *asterisque.Session, drop asterisque.Drop) { d.note(s, "dropped: "+drop.Reason.String()) },
	})
}

// told returns the calls of hooks for a session.
func (d *diary) told(s *asterisque.Session) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.of[s]...)
}

// lives returns the calls of hooks for a session, except those about its limits.
func (d *diary) lives(s *asterisque.Session) []string {
	return slices.DeleteFunc(d.told(s), func(what string) bool {
		return strings.HasPrefix(what, "inbound") || strings.HasPrefix(what, "outbound")
	})
}

const closedHere = "ended: asterisque: session closed: closed by the application"

// Hooks are called in order, from the begin of a session to its end.
func TestHooks_Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		conn, links, _, _ := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAccess(asterisque.Access{PlainCredentials: true}), d.hooks())
		s := conn.Session()
		synctest.Wait()
		require.Equal(t, []string{"begun"}, d.lives(s))
		for range 2 {
			links.Cut()
			synctest.Wait()
			_, err := testkit.Echo.Call(testkit.Background, conn, "x")
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Equal(t, []string{"begun", "away", "back", "away", "back"}, d.lives(s))
		s.Close()
		synctest.Wait()
		require.Equal(t, []string{"begun", "away", "back", "away", "back", closedHere}, d.lives(s))
		conn.Close()
	})
}

// The end of a session that is not resumed follows its loss.
func TestHooks_EndAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		conn, links, _, there := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAccess(asterisque.Access{PlainCredentials: true}), d.hooks())
		synctest.Wait()
		accepted := there.Sessions()[0]
		links.FailWith(errors.New("no"))
		links.Cut()
		fakeclock.Sleep(2 * time.Minute)
		synctest.Wait()
		told := d.lives(accepted)
		require.Equal(t, []string{"begun", "away"}, told[:2])
		require.Len(t, told, 3)
		require.Contains(t, told[2], "ended: asterisque: unavailable: the peer did not come back")
		conn.Close()
	})
}

// The begin is reported first, even for a session that ends at once.
func TestHooks_BeginFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		here, there := asterisque.NewNode(), asterisque.NewNode(d.hooks())
		defer here.Close()
		defer there.Close()
		for range 100 {
			a, b := wire.Pipe()
			go func() {
				if s, err := here.Attach(testkit.Background, a); err == nil {
					s.Close()
				}
			}()
			there.Accept(testkit.Background, b) // which may fail, and then there are no calls
		}
		there.Close()
		synctest.Wait()
		require.NotEmpty(t, d.of)
		for s := range d.of {
			told := d.lives(s)
			require.Equal(t, "begun", told[0])
			require.Len(t, told, 2)
			require.Contains(t, told[1], "ended: ")
		}
	})
}

// No hook is called after the end.
func TestHooks_NothingAfterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		stuck, released := make(chan struct{}), make(chan struct{})
		svc := asterisque.NewService()
		svc.Handle(7, "stays", func(_ context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
			<-stuck // ignores its context
			p.Post(make([]byte, 100))
			close(released)
			return params, nil
		})
		dialled, accepted := testkit.InMemory(t, svc, d.hooks(), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(50, 100), Window: -1}))
		for range 60 { // the inbound soft limit
			dialled.Open(testkit.Background, 7, make([]byte, 10))
		}
		synctest.Wait()
		accepted.Close()
		synctest.Wait()
		told := d.told(accepted)
		require.Equal(t, closedHere, told[len(told)-1])
		close(stuck)
		<-released
		accepted.SetLimits(testkit.Messages(10, 20), testkit.Messages(10, 20))
		synctest.Wait()
		require.Equal(t, told, d.told(accepted))
		require.Equal(t, 1, strings.Count(strings.Join(told, "\n"), "ended: "))
	})
}

// When the end is reported, Close has nothing to wait for.
func TestHooks_EndThenClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		d.within = func(s *asterisque.Session, what string) {
			if what == closedHere {
				require.Error(t, s.Err())
				s.Close() // returns at once
			}
		}
		node := asterisque.NewNode(d.hooks())
		peer := asterisque.NewNode()
		defer peer.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, node, peer)
		dialled.Close()
		<-accepted.Done()
		peer.Close()
		synctest.Wait()
		require.Equal(t, []string{"begun", closedHere}, d.lives(dialled))
		node.Close()
	})
}

// Hooks of a session are called one at a time, and beside those of other sessions.
func TestHooks_OneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, hold := newDiary(), make(chan struct{})
		d.within = func(s *asterisque.Session, _ string) {
			d.mu.Lock()
			held := s == d.first
			d.mu.Unlock()
			if held {
				<-hold
			}
		}
		here := asterisque.NewNode()
		there := asterisque.NewNode(d.hooks())
		defer here.Close()
		defer there.Close()
		_, first := asterisquetest.ConnectNodes(t, here, there)
		synctest.Wait()
		_, second := asterisquetest.ConnectNodes(t, here, there)
		for range 3 {
			for _, s := range []*asterisque.Session{first, second} {
				s.SetLimits(testkit.Messages(1, 100), testkit.Messages(1, 100))
				s.SetLimits(limits.Limits{}, limits.Limits{})
			}
		}
		first.Close() // a hook that blocks delays nothing else
		second.Close()
		synctest.Wait()
		require.Equal(t, []string{"begun"}, d.lives(first), "one at a time")
		require.Equal(t, []string{"begun", closedHere}, d.lives(second), "other sessions continue")
		close(hold)
		synctest.Wait()
		require.Equal(t, []string{"begun", closedHere}, d.lives(first))
		require.False(t, d.clashed)
	})
}

// Hooks may close their session and their node.
func TestHooks_CloseSessionAndNode(t *testing.T) {
	for _, closes := range []string{"session", "node"} {
		for _, at := range []string{"begun", "away", "back", "ended"} {
			t.Run(closes+" when "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newDiary()
					var there *asterisque.Node
					returned := make(chan struct{}, 1)
					d.within = func(s *asterisque.Session, what string) {
						if !strings.HasPrefix(what, at) || there == nil && at != "begun" {
							return
						}
						if closes == "session" {
							s.Close()
						} else if there != nil {
							there.Close()
						}
						select {
						case returned <- struct{}{}:
						default:
						}
					}
					here := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAccess(asterisque.Access{PlainCredentials: true}))
					there = asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}),
						asterisque.WithAccess(asterisque.Access{PlainCredentials: true}), d.hooks())
					defer here.Close()
					defer there.Close()
					l := &testkit.Links{To: there}
					ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
					defer cancel()
					conn, err := here.Connect(ctx, "", asterisque.ReconnectConfig{Dial: l.Dial})
					if err == nil {
						testkit.Echo.Call(ctx, conn, "x")
						l.Cut()
						testkit.Echo.Call(ctx, conn, "x")
						conn.Close()
					}
					select {
					case <-returned:
					case <-time.After(time.Hour):
						t.Error("Close waits for the hook that has called it")
					}
				})
			})
		}
	}
}

// A hook that panics or ends its goroutine affects only itself.
func TestHooks_PanicOrGoexit(t *testing.T) {
	for name, fails := range map[string]func(){"panics": func() { panic("x") }, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				before, d := newDiary(), newDiary()
				before.within = func(*asterisque.Session, string) { fails() }
				node := asterisque.NewNode(before.hooks(), d.hooks(), asterisque.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				peer := asterisque.NewNode()
				defer peer.Close()
				dialled, _ := asterisquetest.ConnectNodes(t, node, peer)
				dialled.Close()
				node.Close()
				synctest.Wait()
				require.Equal(t, []string{"begun", closedHere}, before.lives(dialled), "the next one is called all the same")
				require.Equal(t, []string{"begun", closedHere}, d.lives(dialled), "and so are other hooks of the same thing")
				require.Contains(t, log.String(), "SessionBegun "+map[bool]string{true: "panicked", false: "ended its goroutine"}[name == "panics"])
				require.Contains(t, log.String(), "SessionEnded "+map[bool]string{true: "panicked", false: "ended its goroutine"}[name == "panics"])
			})
		})
	}
}

// Several hooks are called in the order of the options.
func TestHooks_SeveralInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []int
		hook := func(n int) asterisque.Option {
			return asterisque.WithHooks(asterisque.Hooks{
				SessionBegun: func(*asterisque.Session) { mu.Lock(); defer mu.Unlock(); order = append(order, n) },
				SessionEnded: func(*asterisque.Session, error) { mu.Lock(); defer mu.Unlock(); order = append(order, 10+n) },
			})
		}
		node := asterisque.NewNode(hook(1), asterisque.WithHooks(asterisque.Hooks{}), hook(2), hook(3))
		peer := asterisque.NewNode()
		defer peer.Close()
		dialled, _ := asterisquetest.ConnectNodes(t, node, peer)
		dialled.Close()
		node.Close()
		synctest.Wait()
		require.Equal(t, []int{1, 2, 3, 11, 12, 13}, order)
	})
}
