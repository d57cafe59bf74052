package interceptors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/interceptors"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// fixint is a subset of MessagePack with one byte per value: integers up to 127, and byte strings
// unchanged.
type fixint struct{}

func (fixint) Name() string { return "fixint" }

func (fixint) Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case *int:
		return append(dst, byte(*v)), nil
	case *[]byte:
		return append(dst, *v...), nil
	}
	return dst, &codec.TypeError{Want: "a small integer", Got: fmt.Sprintf("%T", v)}
}

func (fixint) Decode(data []byte, v any) error {
	n, ok := v.(*int)
	if !ok || len(data) != 1 || data[0] > 127 {
		return &codec.TypeError{Want: "a small integer", Got: "another value"}
	}
	*n = int(data[0])
	return nil
}

// kind contains all inputs that decide the answer of deciding besides the parameters of a call.
type kind struct {
	node, codec, subject string
	function             uint16
}

// deciding returns services for peers with different permissions. Their functions answer, after a
// second, with all inputs that decide the answer. If named is false, the answer does not depend on
// the caller.
func deciding(named bool) map[string]*asterisque.Service {
	offered := make(map[string]*asterisque.Service)
	for _, granted := range []string{"few", "all"} {
		offered[granted] = asterisque.NewService()
		for _, function := range []uint16{10, 11} {
			decide := asterisque.Func[int, []byte](function, "decide")
			decide.Handle(offered[granted], func(ctx context.Context, n int) ([]byte, error) {
				fakeclock.Sleep(time.Second)
				said := fmt.Sprintf("%d by function %d for %s", 2*n, function, granted)
				if named {
					said += " to " + asterisque.SessionOf(ctx).Peer().Subject
				}
				return []byte(said), nil
			})
		}
	}
	return offered
}

// decider returns a node that grants each peer its service, and adds the node's name to answers.
func decider(t *testing.T, name string, offered map[string]*asterisque.Service, around asterisque.Interceptor) *asterisque.Node {
	accept := func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		_, granted, _ := strings.Cut(p.ID, " of ")
		return &asterisque.Grant{Subject: p.ID, Service: offered[granted]}, nil
	}
	signs := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if err := next(ctx, c); err != nil {
			return err
		}
		result, err := c.RawResult()
		c.SetRawResult(slices.Concat(result, []byte(" at "+name)))
		return err
	}
	return node(t, asterisque.WithCodecs(codec.CBOR, codec.JSON, codec.Raw, fixint{}),
		asterisque.WithAccess(asterisque.Access{Accept: accept}), served(around, signs))
}

// TestAttackCoalesce_AnswersOfOthers has peers of each kind send the same bytes while such a call
// of another kind runs. Each has to get its own answer.
func TestAttackCoalesce_AnswersOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		around asterisque.Interceptor // of two nodes
		named  bool
	}{
		"Coalesce":            {interceptors.Coalesce(), true},
		"CoalesceAcrossPeers": {interceptors.CoalesceAcrossPeers(), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := make(map[kind]func(params string) string)
				var kinds []kind
				offered := deciding(c.named)
				for _, at := range []string{"one", "two"} {
					there := decider(t, at, offered, c.around)
					for _, values := range []codec.Values{codec.CBOR, codec.JSON, codec.Raw, fixint{}} {
						for _, subject := range []string{"alice of all", "bob of all", "carol of few"} {
							s := connect(t, node(t, asterisque.WithID(subject), asterisque.WithCodecs(values)), there)
							for _, function := range []uint16{10, 11} {
								k := kind{at, values.Name(), subject, function}
								kinds = append(kinds, k)
								calls[k] = func(params string) string {
									got, err := s.Call(background, function, []byte(params))
									return fmt.Sprintf("%q %v", got, err)
								}
							}
						}
					}
				}
				for _, params := range []string{"1", "\x05"} { // 1, -18 or 49; and 5 or no JSON
					alone := make(map[kind]string)
					for _, k := range kinds {
						alone[k] = calls[k](params)
					}
					require.NotEqual(t, alone[kinds[0]], alone[kinds[1]])
					for _, first := range kinds {
						running := make(chan string)
						go func() { running <- calls[first](params) }()
						synctest.Wait()
						got := make(map[kind]chan string)
						for _, k := range kinds {
							said := make(chan string, 1)
							got[k] = said
							go func() { said <- calls[k](params) }()
						}
						require.Equal(t, alone[first], <-running)
						for _, k := range kinds {
							require.Equal(t, alone[k], <-got[k], "%v, while %v ran", k, first)
						}
					}
				}
			})
		})
	}
}
