package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A journal has the lines of all processes that have written it.
func TestJournal_AllProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.journal")
	j, err := openJournal(name)
	require.NoError(t, err)
	first, err := j.begin("a", "")
	require.NoError(t, err)
	require.NoError(t, j.write(entry{event: answered, call: first}))
	lost, err := j.begin("a", throughExchange)
	require.NoError(t, err)
	require.NoError(t, j.write(entry{noted, lost, madeAgain}))
	_, err = j.file.WriteString("made a 3") // killed in the middle of a line
	require.NoError(t, err)
	require.NoError(t, j.close())

	j, err = openJournal(name)
	require.NoError(t, err)
	defer j.close()
	next, err := j.begin("a", "")
	require.NoError(t, err)
	require.Equal(t, number{"a", 3}, next)
	lines, err := j.lines()
	require.NoError(t, err)
	require.Equal(t, []string{"made a 1", "answered a 1", "made a 2 through the exchange", "noted a 2 " + madeAgain, "failed a 2 its caller was killed", "made a 3"}, lines)
}

// A file that is no journal is left unchanged.
func TestJournal_OtherFile(t *testing.T) {
	for text, want := range map[string]string{
		"hello\n":       `"hello\n" is no line of a journal`,
		"made a more\n": `"made a more\n" is no line of a journal: `,
	} {
		name := filepath.Join(t.TempDir(), "a.journal")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := openJournal(name)
		require.ErrorContains(t, err, want)
	}
}
