package codec

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func readSpec(t *testing.T) string {
	data, err := os.ReadFile("../spec/protocol.md")
	require.NoError(t, err)
	return string(data)
}

// The specification has every code.
func TestCode_InSpecification(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([A-Z]\w+) \| `).FindAllStringSubmatch(readSpec(t), -1)
	want := []string{
		"Failed", "Canceled", "Expired", "NoFunction", "BadParams", "BadResult", "TooLarge", "Overloaded", "Unavailable", "Panicked",
		"Protocol", "SessionClosed", "HardLimit", "Stalled", "Dropped", "Handshake", "WindowViolation", "Unauthorized", "Stopped",
	}
	require.Len(t, want, int(Stopped))
	for i, name := range want {
		require.Contains(t, rows, []string{fmt.Sprintf("| %d | %s | ", i+1, name), fmt.Sprint(i + 1), name})
	}
}
