package leak

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { Main(m) }

// seen returns the running tests, in the view of another goroutine.
func seen() string {
	list := make(chan []string)
	go func() { list <- tests(all()) }()
	return strings.Join(<-list, "\n\n")
}

func TestWatch_SeesRunningTest(t *testing.T) {
	require.Contains(t, seen(), "TestWatch_SeesRunningTest(")
	t.Run("part", func(t *testing.T) {
		require.Contains(t, seen(), "TestWatch_SeesRunningTest.func1(")
		require.NotContains(t, seen(), "TestWatch_SeesRunningTest(", "it waits for its part, and only the part counts")
	})
}

func TestWatch_SeesCleanup(t *testing.T) {
	t.Cleanup(func() { require.Contains(t, seen(), "TestWatch_SeesCleanup.func1(") })
}

func TestOverdue_BeyondLimit(t *testing.T) {
	const limit = time.Minute
	begin := time.Now()
	since := map[string]time.Time{}
	look := func(after time.Duration, running ...string) string {
		return overdue(since, running, begin.Add(after), limit)
	}
	require.Empty(t, look(0, "goroutine 7 [running]: a"))
	require.Empty(t, look(limit, "goroutine 7 [select]: b"), "not longer than the limit")
	require.Empty(t, look(limit+1), "it is done")
	require.Empty(t, look(limit+2, "goroutine 7 [select]: c"), "it is there again: another one")
	require.Empty(t, look(limit+3, "goroutine 8 [select]: d", "goroutine 7 [select]: e"))
	require.Equal(t, "goroutine 7 [select]: f", look(2*limit+3, "goroutine 8 [select]: d", "goroutine 7 [select]: f"))
}

// ExampleMain represents examples, which run in another way than tests.
func ExampleMain() {
	if !strings.Contains(seen(), "leak.ExampleMain(") {
		fmt.Println("the watch does not see the example that runs")
	}
	// Output:
}
