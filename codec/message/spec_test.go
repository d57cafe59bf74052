package message

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func readSpec(t *testing.T) string {
	data, err := os.ReadFile("../../spec/protocol.md")
	require.NoError(t, err)
	return string(data)
}

// The example of the specification is correct.
func TestExample_Specification(t *testing.T) {
	lines := regexp.MustCompile(`(?m)^[<>] ([0-9a-f]{8}) ([0-9a-f]+)  (.+)$`).FindAllStringSubmatch(readSpec(t), -1)
	require.Greater(t, len(lines), 10)
	for _, line := range lines {
		length, err := hex.DecodeString(line[1])
		require.NoError(t, err)
		frame, err := hex.DecodeString(line[2])
		require.NoError(t, err)
		require.EqualValues(t, len(frame), binary.BigEndian.Uint32(length), line[3])
		m, err := parse(frame)
		require.NoError(t, err, line[3])
		require.Equal(t, frame, m.AppendTo(nil), line[3])
	}
}
