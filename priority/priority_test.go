package priority_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/priority"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestPriority_UpAndDown(t *testing.T) {
	require.Equal(t, priority.Priority(1), priority.Normal.Up())
	require.Equal(t, priority.Priority(-1), priority.Normal.Down())
	require.Equal(t, priority.Max, priority.Max.Up())
	require.Equal(t, priority.Min, priority.Min.Down())
}
