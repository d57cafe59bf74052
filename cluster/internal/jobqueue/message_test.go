package jobqueue

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/priority"
)

func TestReceipt_Invalid(t *testing.T) {
	t.Parallel()
	r := callReceipt{Name: "orders", Key: newQueueKey(), Posted: 1, Deadline: 2}
	good := r.encode()
	_, err := parseReceipt(good)
	require.NoError(t, err)
	short := r
	short.Key = short.Key[:8]
	for _, text := range []string{"", "x", good[1:], good[:len(good)-4], receiptMark, receiptMark + "e30", short.encode(), strings.Repeat(good, 20)} {
		_, err := parseReceipt(text)
		require.ErrorIs(t, err, asterisque.ErrBadParams, text)
	}
}

func TestQueue_UrgencyClasses(t *testing.T) {
	t.Parallel()
	for urgency, class := range map[int8]int{math.MaxInt8: 0, 1: 0, 0: 1, -1: 2, math.MinInt8: 2} {
		require.Equal(t, class, classOf(priority.Priority(urgency)), urgency)
	}
}
